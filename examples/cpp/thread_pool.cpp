// A pool of threads that decide rows with one model, through libqwyc.
//
//     c++ -std=c++17 thread_pool.cpp $(pkg-config --cflags --libs qwyc) -pthread -o thread_pool
//     ./thread_pool model.qwyc 8 < rows.bin
//
// Standard input holds rows of float64 numbers, one after the other. It prints the index of each
// row's class and the number of base models that were evaluated.
#include <qwyc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Free {
    void operator()(qwyc_model* model) const { qwyc_free(model); }
};
using Model = std::unique_ptr<qwyc_model, Free>;

std::vector<double> read_numbers() {
    std::vector<double> all;
    double block[4096];
    while (const size_t n = std::fread(block, sizeof(double), 4096, stdin))
        all.insert(all.end(), block, block + n);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: thread_pool model.qwyc THREADS < rows.bin\n");
        return 2;
    }
    qwyc_model* loaded = nullptr;
    if (qwyc_load(argv[1], &loaded) != QWYC_OK) {
        std::fprintf(stderr, "%s\n", qwyc_last_error());
        return 2;
    }
    const Model model(loaded);
    const std::vector<double> numbers = read_numbers();
    const auto width = static_cast<size_t>(qwyc_n_features(model.get()));
    const size_t n = width ? numbers.size() / width : 0;
    std::vector<int32_t> label(n), steps(n);

    // Each thread takes the next row and keeps the message of its own error.
    std::atomic<size_t> next{0};
    const auto count = static_cast<size_t>(std::max(1, std::atoi(argv[2])));
    std::vector<std::string> error(count);
    std::vector<std::thread> pool;
    for (size_t t = 0; t < count; ++t)
        pool.emplace_back([&, t] {
            for (size_t i = next++; i < n; i = next++)
                if (qwyc_decide_one_f64(model.get(), &numbers[i * width], &label[i], &steps[i],
                                        nullptr) != QWYC_OK) {
                    error[t] = qwyc_last_error();
                    return;
                }
        });
    for (std::thread& thread : pool) thread.join();
    for (const std::string& text : error)
        if (!text.empty()) {
            std::fprintf(stderr, "%s\n", text.c_str());
            return 2;
        }
    for (size_t i = 0; i < n; ++i) std::printf("%d,%d\n", label[i], steps[i]);
    return 0;
}
