// Text for messages. Names out of files, and paths, may be long, may hold what a terminal would
// obey, and need not be UTF-8.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace qwyc::capi {

// Bytes of the character that `text` begins with, or 0 if it is not UTF-8; `code` is its number.
inline size_t character(std::string_view text, uint32_t& code) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const auto first = byte(0);
    const size_t n = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (n == 0 || first > 0xf4 || text.size() < n) return 0;
    code = n == 1 ? first : first & (0x7f >> n);
    for (size_t i = 1; i < n; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        code = code << 6 | (byte(i) & 0x3f);
    }
    const bool is_short = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
    return is_short || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

// Controls of terminals (also those of 0x80 to 0x9f), ends of lines, and turns of the direction.
inline bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

// One line of at most `most` bytes of UTF-8. A control becomes a space, what is not UTF-8 a
// question mark.
inline std::string one_line(std::string_view text, size_t most = 2000) {
    std::string out;
    size_t end = 0;  // of what stays if the text is too long
    while (!text.empty()) {
        uint32_t code = 0;
        const size_t n = character(text, code);
        if (n == 0)
            out += '?';
        else if (is_control(code))
            out += ' ';
        else
            out += text.substr(0, n);
        text.remove_prefix(std::max<size_t>(n, 1));
        if (out.size() + 3 <= most) end = out.size();
        if (out.size() > most) return out.replace(end, std::string::npos, "...");
    }
    return out;
}

}  // namespace qwyc::capi
