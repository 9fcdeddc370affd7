#include "fuzz/draft.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "files/container.hpp"
#include "files/model.hpp"
#include "files/sha256.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace qwyc::fuzz {

namespace {

using files::Json;
using files::Type;

struct TypeFacts {
    std::string_view name;
    Type type;
    size_t bytes;
};
constexpr TypeFacts kTypes[] = {
    {"U8", Type::kU8, 1},   {"U32", Type::kU32, 4}, {"U64", Type::kU64, 8}, {"I32", Type::kI32, 4},
    {"I64", Type::kI64, 8}, {"F32", Type::kF32, 4}, {"F64", Type::kF64, 8}};

const TypeFacts* type_of(std::string_view name) {
    for (const TypeFacts& each : kTypes)
        if (each.name == name) return &each;
    return nullptr;
}

constexpr std::string_view kValues[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "64",
                                        "255",
                                        "16777216",
                                        "2147483647",
                                        "1e308",
                                        "0.5",
                                        "4611686018427387904",
                                        "1099511627776",
                                        "null",
                                        "true",
                                        "false",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        "\"x\"",
                                        "NaN",
                                        "-Infinity",
                                        "\"\\u0000\"",
                                        "[[]]",
                                        "1e-9"};
constexpr int64_t kIntegers[] = {0,   1,   -1,      2,       31,        32,        63,        64,
                                 255, 256, 1 << 16, 1 << 24, INT32_MAX, INT32_MIN, INT64_MAX, 3};
constexpr double kReals[] = {0.0, -0.0, 1.0, -1.0, 1e-45, 1e38, 1e300, 0.5, 1e-300};

size_t below(Draft::Engine& random, size_t n) {
    return n ? random() % n : 0;
}

void collect(const Json& value, std::vector<const Json*>& out) {
    for (const Json& item : value.items) {
        out.push_back(&item);
        collect(item, out);
    }
}

// A list or an object with an item left out or, of a list, repeated.
std::string rebuilt(const Json& value, size_t left_out, bool repeated) {
    const bool is_object = value.kind == Json::Kind::kObject;
    std::string out(1, is_object ? '{' : '[');
    const auto add = [&](size_t i) {
        if (out.size() > 1) out += ',';
        if (is_object) {
            const char* const begin = i ? value.items[i - 1].raw.end() + 1 : value.raw.begin() + 1;
            out.append(begin, value.items[i].raw.begin());  // the key and its colon
        }
        out += value.items[i].raw;
    };
    for (size_t i = 0; i < value.items.size(); ++i) {
        if (i != left_out || repeated) add(i);
        if (i == left_out && repeated && !is_object) add(i);
    }
    return out + (is_object ? '}' : ']');
}

std::string near(const Json& value, Draft::Engine& random) {
    if (value.kind == Json::Kind::kInteger && value.raw.size() < 18)
        return std::to_string(std::stoll(std::string(value.raw)) + (below(random, 2) ? 1 : -1));
    return std::string(kValues[below(random, std::size(kValues))]);
}

// Lets the fuzzer change some bytes, which may become up to `most` of them.
std::string changed(std::string bytes, size_t most) {
    const size_t size = bytes.size();
    bytes.resize(std::max(size, most));
    if (bytes.empty()) return bytes;
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), size, bytes.size()));
    return bytes;
}

void append_escaped(std::string_view text, std::string& out) {
    constexpr char digits[] = "0123456789abcdef";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\', out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += "\\u00", out += digits[c >> 4 & 1], out += digits[c & 15];
        } else {
            out += c;
        }
    }
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string out = "[";
    for (const int64_t n : shape) out += (out.size() > 1 ? "," : "") + std::to_string(n);
    return out + "]";
}

}  // namespace

std::optional<Draft> Draft::of(std::span<const uint8_t> file) {
    try {
        const auto bytes = std::as_bytes(file);
        const size_t size =
            files::header_size(bytes.first(std::min<size_t>(bytes.size(), 8)), bytes.size());
        const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
        const Json layout = files::parse_json(all.substr(8, size));
        const std::string header = text(at(at(layout, "__metadata__"), "qwyc"));
        const Json parsed = files::parse_json(header);
        Draft draft;
        draft.body_ = at(parsed, "body").raw;
        draft.format_ = at(parsed, "format").raw;
        const std::string_view data = all.substr(8 + size);
        for (size_t i = 0; i < layout.keys.size(); ++i) {
            if (layout.keys[i] == "__metadata__") continue;
            const Json& facts = layout.items[i];
            DraftTensor tensor{layout.keys[i], text(at(facts, "dtype")), {}, {}};
            for (const Json& n : list(at(facts, "shape"))) tensor.shape.push_back(count(n));
            const auto& offsets = list(at(facts, "data_offsets"));
            if (offsets.size() != 2) return std::nullopt;
            const auto begin = static_cast<size_t>(count(offsets[0]));
            const auto end = static_cast<size_t>(count(offsets[1]));
            if (begin > end || end > data.size()) return std::nullopt;
            tensor.bytes = data.substr(begin, end - begin);
            draft.tensors_.push_back(std::move(tensor));
        }
        return draft;
    } catch (const std::runtime_error&) {  // FileError and JsonError
        return std::nullopt;
    }
}

void Draft::mutate(Engine& random) {
    if (tensors_.empty() || below(random, 2))
        mutate_body(random);
    else
        mutate_tensor(random);
}

void Draft::mutate_body(Engine& random) {
    std::vector<const Json*> values;
    Json parsed;
    try {
        parsed = files::parse_json(body_);
    } catch (const files::JsonError&) {
    }
    collect(parsed, values);
    const size_t kind = values.empty() ? 0 : below(random, 8);
    if (kind == 0) {
        body_ = changed(body_, body_.size() + 16);
        return;
    }
    const Json& value = *values[below(random, values.size())];
    std::string put;
    if (kind == 1)
        put = values[below(random, values.size())]->raw;
    else if (kind == 2)
        put = kValues[below(random, std::size(kValues))];
    else if (kind == 3)
        put = changed(std::string(value.raw), value.raw.size() + 8);
    else if (kind < 6 && !value.items.empty())
        put = rebuilt(value, below(random, value.items.size()), kind == 5);
    else
        put = near(value, random);
    body_.replace(static_cast<size_t>(value.raw.data() - body_.data()), value.raw.size(), put);
}

void Draft::mutate_tensor(Engine& random) {
    const size_t index = below(random, tensors_.size());
    DraftTensor& tensor = tensors_[index];
    const TypeFacts* const type = type_of(tensor.type);
    const size_t each = type ? type->bytes : 1, n = tensor.bytes.size() / each;
    const size_t kind = below(random, 16);
    const auto place = [&] { return tensor.bytes.data() + below(random, n) * each; };
    const auto fit_shape = [&](size_t entries) {
        tensor.bytes.resize(entries * each);
        size_t rest = 1;
        for (size_t i = 1; i < tensor.shape.size(); ++i)
            rest *= static_cast<size_t>(std::max<int64_t>(tensor.shape[i], 1));
        if (!tensor.shape.empty()) tensor.shape[0] = static_cast<int64_t>(entries / rest);
        tensor.bytes.resize(entries / rest * rest * each);
    };
    if (kind == 0) {
        fit_shape(n + 1 + below(random, 3));
    } else if (kind == 1) {
        fit_shape(below(random, n + 1));
    } else if (kind == 2) {
        tensor.bytes = changed(tensor.bytes, tensor.bytes.size() + 16);
        fit_shape(tensor.bytes.size() / each);
    } else if (kind == 3) {
        if (below(random, 8) == 0)
            tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
        else if (below(random, 4) == 0)
            tensor.shape.push_back(1);
        else
            tensor.type = kTypes[below(random, std::size(kTypes))].name;
    } else if (n == 0) {
        fit_shape(1);
    } else if (kind < 8) {
        std::memmove(place(), place(), each);
    } else if (kind < 12 && tensor.type[0] == 'F') {
        const double value = kReals[below(random, std::size(kReals))];
        const auto single = static_cast<float>(value);
        std::memcpy(place(), each == 8 ? static_cast<const void*>(&value) : &single, each);
    } else if (kind < 12) {
        const int64_t value = kIntegers[below(random, std::size(kIntegers))];
        std::memcpy(place(), &value, each);
    } else if (kind < 14) {
        char* const at = place();
        *at = static_cast<char>(*at + (below(random, 2) ? 1 : -1));
    } else {
        const std::string some = changed(std::string(place(), each), each);
        std::copy(some.begin(), some.end(), place());
    }
}

void Draft::mix(const Draft& other, Engine& random) {
    if (other.tensors_.empty() || below(random, 3) == 0) {
        body_ = other.body_;
        return;
    }
    const DraftTensor& from = other.tensors_[below(random, other.tensors_.size())];
    for (DraftTensor& tensor : tensors_)
        if (tensor.name == from.name) {
            tensor = from;
            return;
        }
    tensors_.push_back(from);
}

std::string Draft::checksum() const {
    std::vector<const DraftTensor*> sorted;
    for (const DraftTensor& tensor : tensors_) sorted.push_back(&tensor);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    files::Sha256 digest;
    digest.add(body_);
    for (const DraftTensor* tensor : sorted) {
        const TypeFacts* const type = type_of(tensor->type);
        digest.add(tensor->name);
        if (type) digest.add(files::Tensor{type->type, tensor->shape, {}}.described());
        digest.add(tensor->bytes);
    }
    return digest.hex();
}

std::string Draft::written() const {
    std::string header = R"({"__metadata__":{"qwyc":")";
    append_escaped(
        "{\"body\":" + body_ + ",\"format\":" + format_ + ",\"sha256\":\"" + checksum() + "\"}",
        header);
    header += "\"}";
    size_t at = 0;
    for (const DraftTensor& tensor : tensors_) {
        header += ",\"";
        append_escaped(tensor.name, header);
        header += R"(":{"dtype":")" + tensor.type + R"(","shape":)" + shape_text(tensor.shape) +
                  R"(,"data_offsets":[)" + std::to_string(at) + "," +
                  std::to_string(at + tensor.bytes.size()) + "]}";
        at += tensor.bytes.size();
    }
    header += '}';
    const uint64_t size = header.size();
    std::string file(reinterpret_cast<const char*>(&size), sizeof size);
    file += header;
    for (const DraftTensor& tensor : tensors_) file += tensor.bytes;
    return file;
}

// Whether the body had another digest than that of the model.
bool Draft::set_digest(const std::string& file) {
    try {
        files::FileBytes copy(file.size());
        std::memcpy(copy.data(), file.data(), file.size());
        const files::Container container(std::move(copy));
        const std::string digest = files::digest_of_model(container);
        const Json body = files::parse_json(body_);
        const Json* const model = body.find("model");
        const Json* const old = model ? model->find("digest") : body.find("model_digest");
        if (!old || old->text == digest) return false;
        body_.replace(static_cast<size_t>(old->raw.data() - body_.data()), old->raw.size(),
                      "\"" + digest + "\"");
        return true;
    } catch (const std::runtime_error&) {  // not a sound file in other ways
        return false;
    }
}

std::string Draft::sealed() {
    std::string file = written();
    return set_digest(file) ? written() : file;
}

}  // namespace qwyc::fuzz
