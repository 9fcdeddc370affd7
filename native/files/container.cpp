#include "files/container.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

namespace qwyc::files {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

namespace {

constexpr size_t kSizeBytes = 8, kMostHeaderBytes = 100'000'000;
constexpr std::align_val_t kAlignment{64};

struct TypeName {
    std::string_view in_file, in_numpy;
    size_t bytes;
};
constexpr TypeName kTypes[] = {{"U8", "|u1", 1},  {"U32", "<u4", 4}, {"U64", "<u8", 8},
                               {"I32", "<i4", 4}, {"I64", "<i8", 8}, {"F32", "<f4", 4},
                               {"F64", "<f8", 8}};

FileError not_a_file() {
    return FileError("not a qwyc file, or a truncated one; qwyc optimize makes one from a model");
}

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

#if defined(_WIN32)
constexpr int kToRead = O_RDONLY | O_BINARY | O_NOINHERIT;
#else
constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
#endif

// A file that is open as long as this is.
class OpenFile {
  public:
    explicit OpenFile(const char* path) : file_(::open(path, kToRead)) {
        if (file_ < 0) throw std::system_error(errno, std::generic_category());
    }
    ~OpenFile() { ::close(file_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int number() const { return file_; }

    // Up to n bytes; fewer at the end of the file.
    size_t read(std::byte* out, size_t n) const {
        size_t done = 0;
        while (done < n) {
            const auto most = std::min<size_t>(n - done, 1 << 30);  // an int on some systems
            const auto some = ::read(file_, out + done, static_cast<unsigned>(most));
            if (some < 0 && errno == EINTR) continue;
            if (some < 0) throw std::system_error(errno, std::generic_category());
            if (some == 0) break;
            done += static_cast<size_t>(some);
        }
        return done;
    }

  private:
    int file_;
};

}  // namespace

FileBytes::FileBytes(size_t size)
    : data_(static_cast<std::byte*>(::operator new(std::max<size_t>(size, 1), kAlignment))),
      size_(size) {}

void FileBytes::Free::operator()(std::byte* data) const {
    ::operator delete(data, kAlignment);
}

FileBytes read_file(const char* path) {
    const OpenFile file(path);
    struct stat facts;
    if (::fstat(file.number(), &facts) != 0)
        throw std::system_error(errno, std::generic_category());
    if (S_ISDIR(facts.st_mode)) throw std::system_error(EISDIR, std::generic_category());
    require(S_ISREG(facts.st_mode), "not a qwyc file: it is no regular file");
    require(facts.st_size > 0, "not a qwyc file: it is empty");
    const auto size = static_cast<size_t>(facts.st_size);
    std::byte begin[kSizeBytes];
    const size_t first = file.read(begin, kSizeBytes);
    header_size({begin, first}, size);
    FileBytes content(size);
    std::memcpy(content.data(), begin, kSizeBytes);
    std::byte one_more;
    if (file.read(content.data() + kSizeBytes, size - kSizeBytes) != size - kSizeBytes ||
        file.read(&one_more, 1) != 0)
        throw FileError("the file has changed while it was read; load it again");
    return content;
}

size_t header_size(std::span<const std::byte> begin, size_t file_size) {
    if (begin.size() < kSizeBytes || file_size < kSizeBytes) throw not_a_file();
    uint64_t size;
    std::memcpy(&size, begin.data(), kSizeBytes);
    if (size > std::min(file_size - kSizeBytes, kMostHeaderBytes)) throw not_a_file();
    return static_cast<size_t>(size);
}

std::string Tensor::described() const {
    std::string out(kTypes[static_cast<int>(type)].in_numpy);
    out += '(';
    for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + (shape.size() == 1 ? ",)" : ")");
}

Container::Container(FileBytes file) : file_(std::move(file)) {
    const auto bytes = file_.bytes();
    const size_t size = header_size(bytes.first(std::min(bytes.size(), kSizeBytes)), bytes.size());
    Json layout;
    const Json *version, *checksum_in_file;
    try {
        layout = parse_json(as_text(bytes.subspan(kSizeBytes, size)));
        const Json& metadata = at(layout, "__metadata__");
        header_ = text(at(metadata, "qwyc"));
        parsed_ = parse_json(header_, {.canonical = true});
        body_ = &at(parsed_, "body");
        version = &at(parsed_, "format");
        checksum_in_file = &at(parsed_, "sha256");
        if (version->kind != Json::Kind::kInteger) throw not_a_file();
    } catch (const JsonError&) {
        throw not_a_file();
    } catch (const FileError&) {
        throw not_a_file();
    }
    if (version->raw != "1" && version->raw != "2")
        throw UnsupportedError("the file has format " + shortened(*version) +
                               "; this version of the library reads formats 1 and 2. Install the "
                               "version that wrote it, or optimise again.");
    format_ = version->raw == "1" ? 1 : 2;
    read_tensors(layout, bytes.subspan(kSizeBytes + size));
    if (checksum_in_file->kind == Json::Kind::kText) expected_ = checksum_in_file->text;
}

void Container::check_checksum() const {
    if (computed_.empty()) hash_beside_checksum({});
    if (expected_ != computed_)
        throw FileError("the file is damaged: its contents do not match their checksum");
}

std::string Container::hash_beside_checksum(const Message& message) const {
    auto [checksum, digest] = Sha256::hex_of_both(checked(), message);
    computed_ = std::move(checksum);
    return std::move(digest);
}

// They follow each other without gaps and fill the file, as safetensors has it.
void Container::read_tensors(const Json& layout, std::span<const std::byte> data) {
    struct Place {
        int64_t begin, end;
        const std::string* name;
        Tensor tensor;
    };
    std::vector<Place> places;
    try {
        for (size_t i = 0; i < layout.keys.size(); ++i) {
            if (layout.keys[i] == "__metadata__") continue;
            const Json& facts = layout.items[i];
            const std::string& type = text(at(facts, "dtype"));
            const auto* const known =
                std::find_if(std::begin(kTypes), std::end(kTypes),
                             [&](const TypeName& each) { return each.in_file == type; });
            if (known == std::end(kTypes)) throw FileError("an unknown type of tensor");
            Tensor tensor{static_cast<Type>(known - kTypes), {}, {}};
            unsigned __int128 n_bytes = known->bytes;
            for (const Json& n : list(at(facts, "shape"))) {
                tensor.shape.push_back(count(n));
                n_bytes *= static_cast<uint64_t>(tensor.shape.back());
                // Later factors may be 0, which Python multiplies too.
                require(n_bytes >> 64 == 0, "a tensor is too large");
            }
            const auto& offsets = list(at(facts, "data_offsets"));
            require(offsets.size() == 2, "a tensor has not two offsets");
            const int64_t begin = count(offsets[0]), end = count(offsets[1]);
            if (end < begin || static_cast<uint64_t>(end - begin) != n_bytes)
                throw FileError("tensor " + layout.keys[i] + " is not of its shape");
            places.push_back({begin, end, &layout.keys[i], std::move(tensor)});
        }
        std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        int64_t end = 0;
        for (const Place& place : places) {
            require(place.begin == end, "its tensors overlap, leave gaps or do not fill the file");
            end = place.end;
        }
        require(end == static_cast<int64_t>(data.size()),
                "its tensors overlap, leave gaps or do not fill the file");
    } catch (const FileError& error) {
        throw FileError("the file is damaged: " + std::string(error.what()));
    }
    for (Place& place : places) {
        auto bytes = data.subspan(place.begin, place.end - place.begin);
        const size_t each = kTypes[static_cast<int>(place.tensor.type)].bytes;
        if (reinterpret_cast<uintptr_t>(bytes.data()) % each != 0) {
            FileBytes copy(bytes.size());
            std::copy(bytes.begin(), bytes.end(), copy.data());
            moved_.push_back(std::move(copy));
            bytes = moved_.back().bytes();
        }
        place.tensor.bytes = bytes;
        tensors_.emplace(*place.name, std::move(place.tensor));
    }
}

// What the checksum is over.
Message Container::checked() const {
    Message all;
    all.add(body_->raw);
    for (const auto& [name, tensor] : tensors_) {
        all.add(name);
        all.keep(tensor.described());
        all.add(tensor.bytes);
    }
    return all;
}

const Tensor& Container::tensor(std::string_view name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw FileError("tensor " + std::string(name) + " is missing");
    return found->second;
}

}  // namespace qwyc::files
