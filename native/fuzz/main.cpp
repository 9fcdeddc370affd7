// Runs a fuzz target where the compiler has no libFuzzer, with some of its options:
// `TARGET [-max_total_time=60] [-runs=N] [-seed=0] [-max_len=4096] [FILES AND FOLDERS]`.
// The files are run first, then mutations of them. What code they reach is not looked at.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
[[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,
                                             unsigned seed);
[[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
}

namespace {

std::minstd_rand mutations;
std::string running;  // the input that is being run

// Leaves the input behind that ended the process.
void save_running() {
    std::ofstream("crash-input", std::ios::binary) << running;
    std::cerr << "the input is in the file crash-input\n";
}
void on_abort(int) {
    save_running();
    std::_Exit(1);
}

struct Options {
    double seconds = 60;
    uint64_t runs = UINT64_MAX, seed = 0;
    size_t most = 4096;
    std::vector<std::string> inputs;
};

std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Options parse(int n, char** arguments) {
    Options options;
    for (int i = 1; i < n; ++i) {
        const std::string word = arguments[i];
        const auto value = word.substr(std::min(word.find('=') + 1, word.size()));
        if (word.starts_with("-max_total_time="))
            options.seconds = std::stod(value);
        else if (word.starts_with("-runs="))
            options.runs = std::stoull(value);
        else if (word.starts_with("-seed="))
            options.seed = std::stoull(value);
        else if (word.starts_with("-max_len="))
            options.most = std::stoull(value);
        else if (word.starts_with("-"))
            continue;  // an option of libFuzzer that has no meaning here
        else if (std::filesystem::is_directory(word))
            for (const auto& entry : std::filesystem::directory_iterator(word))
                options.inputs.push_back(content_of(entry.path()));
        else
            options.inputs.push_back(content_of(word));
    }
    return options;
}

void run(const std::string& input) {
    running = input;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(running.data()), running.size());
}

}  // namespace

// Changes, adds, removes or repeats some bytes.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
    const auto below = [](size_t n) { return n ? mutations() % n : 0; };
    const size_t at = below(size + 1);
    switch (size == 0 ? 0 : below(5)) {
        case 0: {
            const size_t more = std::min(most - size, 1 + below(8));
            std::copy_backward(data + at, data + size, data + size + more);
            for (size_t i = 0; i < more; ++i) data[at + i] = static_cast<uint8_t>(mutations());
            return size + more;
        }
        case 1: {
            const size_t fewer = std::min(size - at, 1 + below(8));
            std::copy(data + at + fewer, data + size, data + at);
            return size - fewer;
        }
        case 2:
            std::memmove(data + below(size - size / 2), data + below(size - size / 2), size / 2);
            return size;
        case 3:
            data[below(size)] ^= static_cast<uint8_t>(1u << below(8));
            return size;
        default:
            data[below(size)] = static_cast<uint8_t>(mutations());
            return size;
    }
}

int main(int n_arguments, char** arguments) {
    Options options = parse(n_arguments, arguments);
    std::signal(SIGABRT, on_abort);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_running);
    for (const std::string& input : options.inputs) run(input);
    if (options.inputs.empty()) options.inputs.emplace_back();
    uint64_t count = 0;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
    for (; count < options.runs && std::chrono::steady_clock::now() < end; ++count) {
        mutations.seed(static_cast<unsigned>(options.seed * 0x9e3779b9u + count + 1));
        std::string input = options.inputs[mutations() % options.inputs.size()];
        for (auto k = mutations() % 4; k < 4; ++k) {
            size_t size = input.size();
            input.resize(std::max(options.most, size));
            auto* const data = reinterpret_cast<uint8_t*>(input.data());
            const auto seed = static_cast<unsigned>(mutations());
            size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(data, size, input.size(), seed)
                                           : LLVMFuzzerMutate(data, size, input.size());
            input.resize(size);
        }
        run(input);
    }
    std::cout << "Done " << count << " runs\n";
    return 0;
}
