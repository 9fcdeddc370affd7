// The C interface: many threads on one model, and damaged files, under sanitizers.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "qwyc.h"
#include "tests/check.hpp"

namespace {

constexpr int kThreads = 16;

std::vector<std::filesystem::path> golden_files() {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(QWYC_GOLDEN_FILES))
        if (entry.path().extension() == ".qwyc") all.push_back(entry.path());
    return all;
}

std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Numbers that every model takes.
std::vector<double> random_rows(int64_t n, int64_t width) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal(0, 20);
    std::vector<double> rows(static_cast<size_t>(n * width));
    for (double& x : rows) x = random() % 3 ? std::round(std::abs(normal(random))) : normal(random);
    return rows;
}

struct Decided {
    explicit Decided(size_t n) : label(n), steps(n), score(n) {}
    bool operator==(const Decided&) const = default;
    std::vector<int32_t> label, steps;
    std::vector<double> score;
};

}  // namespace

TEST(many_threads_share_one_model) {
    const auto files = golden_files();
    CHECK(!files.empty());
    for (const auto& path : files) {
        qwyc_model* model = nullptr;
        CHECK_EQUAL(qwyc_load(path.c_str(), &model), QWYC_OK);
        if (!model) continue;
        const int64_t n = 300, width = qwyc_n_features(model);
        const auto numbers = random_rows(n, width);
        const qwyc_rows rows{numbers.data(), QWYC_FLOAT64, n, width, 0, 0};
        Decided expected(n);
        CHECK_EQUAL(qwyc_decide(model, &rows, 1, expected.label.data(), expected.steps.data(),
                                expected.score.data()),
                    QWYC_OK);
        std::vector<std::thread> pool;
        for (int t = 0; t < kThreads; ++t)
            pool.emplace_back([&, t] {
                Decided found(n);
                if (t % 4 == 0) {  // many rows, on two threads of the library's own
                    CHECK_EQUAL(qwyc_decide(model, &rows, 2, found.label.data(), found.steps.data(),
                                            found.score.data()),
                                QWYC_OK);
                } else {
                    for (int64_t i = 0; i < n; ++i)
                        CHECK_EQUAL(qwyc_decide_one_f64(model, &numbers[i * width], &found.label[i],
                                                        &found.steps[i], &found.score[i]),
                                    QWYC_OK);
                }
                CHECK(found == expected);
                // Each thread has the message of its own error.
                qwyc_model* none = nullptr;
                const std::string missing = "no file " + std::to_string(t);
                CHECK_EQUAL(qwyc_load(missing.c_str(), &none), QWYC_ERROR_READ);
                CHECK(std::string(qwyc_last_error()).find(missing) == 0);
            });
        for (std::thread& thread : pool) thread.join();
        qwyc_free(model);
    }
}

TEST(threads_load_and_free_the_same_file) {
    const std::string path = golden_files().front();
    std::vector<std::thread> pool;
    for (int t = 0; t < 4; ++t)
        pool.emplace_back([&] {
            qwyc_model* model = nullptr;
            CHECK_EQUAL(qwyc_load(path.c_str(), &model), QWYC_OK);
            CHECK(qwyc_n_models(model) > 0);
            qwyc_free(model);
        });
    for (std::thread& thread : pool) thread.join();
}

TEST(damaged_files_are_refused) {
    std::mt19937 random(0);
    const std::string whole = content_of(golden_files().front());
    for (int i = 0; i < 200; ++i) {
        std::string content = whole;
        if (i % 2)
            content.resize(random() % content.size());
        else
            content[random() % content.size()] ^= static_cast<char>(1 << random() % 7);
        qwyc_model* model = nullptr;
        const qwyc_status status = qwyc_load_memory(content.data(), content.size(), &model);
        CHECK((status == QWYC_OK) == (model != nullptr));
        CHECK(status == QWYC_OK || *qwyc_last_error() != '\0');
        CHECK(!(i % 2) || status == QWYC_ERROR_FILE);
        qwyc_free(model);
    }
}
