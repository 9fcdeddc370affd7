#include "files/json.hpp"

#include <algorithm>
#include <numeric>

namespace qwyc::files {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Appends a code point as UTF-8.
void append_utf8(uint32_t code, std::string& out) {
    const auto tail = [&](int shift) {
        out.push_back(static_cast<char>(0x80 | (code >> shift & 0x3f)));
    };
    if (code < 0x80) {
        out.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
        out.push_back(static_cast<char>(0xc0 | code >> 6));
        tail(0);
    } else if (code < 0x10000) {
        out.push_back(static_cast<char>(0xe0 | code >> 12));
        tail(6), tail(0);
    } else {
        out.push_back(static_cast<char>(0xf0 | code >> 18));
        tail(12), tail(6), tail(0);
    }
}

class Parser {
  public:
    Parser(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

    Json parse() {
        skip_spaces();
        Json value = parse_value(0);
        skip_spaces();
        require(at_ == text_.size(), "there is something after the value");
        return value;
    }

  private:
    void require(bool ok, const char* what) const {
        if (!ok)
            throw JsonError("not sound JSON: " + std::string(what) + " at byte " +
                            std::to_string(at_));
    }

    // 0 at the end, which is no token.
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(char c) {
        if (peek() != c || at_ >= text_.size()) return false;
        ++at_;
        return true;
    }

    void skip_spaces() {
        const size_t begin = at_;
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
        require(!limits_.canonical || at_ == begin, "there is a space between tokens");
    }

    Json parse_value(int depth) {
        require(++values_ <= limits_.values, "there are too many values");
        const size_t begin = at_;
        Json value;
        switch (peek()) {
            case '{':
                parse_object(value, depth);
                break;
            case '[':
                parse_list(value, depth);
                break;
            case '"':
                value.kind = Json::Kind::kText;
                value.text = parse_text();
                break;
            case 't':
                parse_word("true", Json::Kind::kTrue, value);
                break;
            case 'f':
                parse_word("false", Json::Kind::kFalse, value);
                break;
            case 'n':
                parse_word("null", Json::Kind::kNull, value);
                break;
            case 'N':
                parse_word("NaN", Json::Kind::kReal, value);
                break;
            case 'I':
                parse_word("Infinity", Json::Kind::kReal, value);
                break;
            default:
                parse_number(value);
        }
        value.raw = text_.substr(begin, at_ - begin);
        return value;
    }

    void parse_word(std::string_view word, Json::Kind kind, Json& value) {
        require(text_.substr(at_, word.size()) == word, "a value was expected");
        at_ += word.size();
        value.kind = kind;
    }

    void parse_number(Json& value) {
        value.kind = Json::Kind::kInteger;
        take('-');
        if (peek() == 'I') return parse_word("Infinity", Json::Kind::kReal, value);
        require(is_digit(peek()), "a value was expected");
        if (!take('0')) skip_digits();
        require(!is_digit(peek()), "a number starts with 0");
        if (take('.')) {
            value.kind = Json::Kind::kReal;
            skip_digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            value.kind = Json::Kind::kReal;
            if (!take('+')) take('-');
            skip_digits();
        }
    }

    void skip_digits() {
        require(is_digit(peek()), "a digit was expected");
        while (is_digit(peek())) ++at_;
    }

    void parse_list(Json& value, int depth) {
        require(depth < limits_.depth, "values are nested too deeply");
        value.kind = Json::Kind::kList;
        ++at_;
        skip_spaces();
        if (take(']')) return;
        do {
            skip_spaces();
            value.items.push_back(parse_value(depth + 1));
            skip_spaces();
        } while (take(','));
        require(take(']'), "a list does not end");
    }

    void parse_object(Json& value, int depth) {
        require(depth < limits_.depth, "values are nested too deeply");
        value.kind = Json::Kind::kObject;
        ++at_;
        skip_spaces();
        if (take('}')) return;
        do {
            skip_spaces();
            require(peek() == '"', "a key was expected");
            value.keys.push_back(parse_text());
            skip_spaces();
            require(take(':'), "a colon was expected");
            skip_spaces();
            value.items.push_back(parse_value(depth + 1));
            skip_spaces();
        } while (take(','));
        require(take('}'), "an object does not end");
        check_keys(value.keys);
    }

    void check_keys(const std::vector<std::string>& keys) const {
        if (limits_.canonical) {
            for (size_t i = 1; i < keys.size(); ++i)
                require(keys[i - 1] < keys[i], "keys are not in ascending order");
            return;
        }
        std::vector<size_t> order(keys.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::sort(order.begin(), order.end(),
                  [&](size_t a, size_t b) { return keys[a] < keys[b]; });
        for (size_t i = 1; i < order.size(); ++i)
            require(keys[order[i - 1]] != keys[order[i]], "a key occurs twice");
    }

    std::string parse_text() {
        std::string out;
        ++at_;
        for (;;) {
            size_t end = at_;  // of characters that stand for themselves
            while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' &&
                   static_cast<unsigned char>(text_[end]) >= 0x20 &&
                   static_cast<unsigned char>(text_[end]) < 0x80)
                ++end;
            out.append(text_, at_, end - at_);
            at_ = end;
            require(at_ < text_.size(), "text does not end");
            if (take('"')) return out;
            if (take('\\')) {
                parse_escape(out);
            } else {
                require(static_cast<unsigned char>(text_[at_]) >= 0x80, "a control character");
                require(!limits_.canonical, "a character that is not ASCII");
                copy_utf8(out);
            }
        }
    }

    void parse_escape(std::string& out) {
        const char c = peek();
        constexpr std::string_view names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
        const size_t known = names.find(c);
        if (known != std::string_view::npos && at_ < text_.size()) {
            ++at_;
            out.push_back(meant[known]);
            return;
        }
        require(take('u'), "an unknown escape");
        uint32_t code = parse_hex();
        require(code < 0xdc00 || code > 0xdfff, "half of a surrogate pair");
        if (code >= 0xd800 && code <= 0xdbff) {
            require(take('\\') && take('u'), "half of a surrogate pair");
            const uint32_t low = parse_hex();
            require(low >= 0xdc00 && low <= 0xdfff, "half of a surrogate pair");
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        append_utf8(code, out);
    }

    uint32_t parse_hex() {
        require(text_.size() - at_ >= 4, "text does not end");
        uint32_t code = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            const char c = text_[at_];
            const int digit = is_digit(c)            ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            require(digit >= 0, "a hexadecimal digit was expected");
            code = code << 4 | static_cast<uint32_t>(digit);
        }
        return code;
    }

    // One character of two to four bytes, the shortest that it can have.
    void copy_utf8(std::string& out) {
        const auto lead = static_cast<unsigned char>(text_[at_]);
        const int n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        require(lead >= 0xc2 && lead <= 0xf4 && text_.size() - at_ >= static_cast<size_t>(n),
                "text is not UTF-8");
        uint32_t code = lead & (0xff >> (n + 1));
        for (int i = 1; i < n; ++i) {
            const auto byte = static_cast<unsigned char>(text_[at_ + i]);
            require((byte & 0xc0) == 0x80, "text is not UTF-8");
            code = code << 6 | (byte & 0x3f);
        }
        const uint32_t least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
        require(code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff),
                "text is not UTF-8");
        out.append(text_, at_, n);
        at_ += n;
    }

    std::string_view text_;
    JsonLimits limits_;
    size_t at_ = 0, values_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
    for (size_t i = 0; i < keys.size(); ++i)
        if (keys[i] == key) return &items[i];
    return nullptr;
}

Json parse_json(std::string_view text, const JsonLimits& limits) {
    return Parser(text, limits).parse();
}

}  // namespace qwyc::files
