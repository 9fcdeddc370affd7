// The C interface: many threads on one model, and damaged files, under sanitizers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "capi/one_line.hpp"
#include "core/float_mode.hpp"
#include "qwyc.h"
#include "tests/check.hpp"

namespace {

#if QWYC_FLOAT_MODES
using qwyc::FloatMode;
#endif

constexpr int kThreads = 16;

std::vector<std::filesystem::path> golden_files(const char* folder = QWYC_GOLDEN_FILES) {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
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
        CHECK_EQUAL(qwyc_load(path.string().c_str(), &model), QWYC_OK);
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

// Every thread loads models of its own while all of them use one that is shared.
TEST(sixty_four_threads_load_and_decide) {
    const std::string path = golden_files().front().string(), content = content_of(path);
    qwyc_model* shared = nullptr;
    CHECK_EQUAL(qwyc_load(path.c_str(), &shared), QWYC_OK);
    const int64_t n = 40, width = qwyc_n_features(shared);
    const auto numbers = random_rows(n, width);
    const qwyc_rows rows{numbers.data(), QWYC_FLOAT64, n, width, 0, 0};
    Decided expected(n);
    const auto decide = [&](const qwyc_model* model, Decided& out, int threads) {
        CHECK_EQUAL(qwyc_decide(model, &rows, threads, out.label.data(), out.steps.data(),
                                out.score.data()),
                    QWYC_OK);
    };
    decide(shared, expected, 1);
    std::vector<std::thread> pool;
    for (int t = 0; t < 64; ++t)
        pool.emplace_back([&, t] {
            for (int k = 0; k < 2; ++k) {
                qwyc_model* own = nullptr;
                CHECK_EQUAL(t % 2 ? qwyc_load(path.c_str(), &own)
                                  : qwyc_load_memory(content.data(), content.size(), &own),
                            QWYC_OK);
                Decided of_own(n), of_shared(n);
                decide(own, of_own, 1);
                decide(shared, of_shared, 1 + t % 2);
                CHECK(of_own == expected);
                CHECK(of_shared == expected);
                qwyc_free(own);
            }
        });
    for (std::thread& thread : pool) thread.join();
    qwyc_free(shared);
}

// The name of a tensor is shown where its shape is wrong.
TEST(messages_have_one_short_line) {
    std::string name = "\\u001b[2J\\n";
    for (int i = 0; i < 3000; ++i) name += "\xc3\xa9";
    const std::string header =
        R"({"__metadata__":{"qwyc":"{\"body\":{},\"format\":2,\"sha256\":\"\"}"},")" + name +
        R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})";
    std::string file(8, '\0');
    const uint64_t size = header.size();
    std::memcpy(file.data(), &size, 8);
    file += header + "x";
    qwyc_model* model = nullptr;
    CHECK_EQUAL(qwyc_load_memory(file.data(), file.size(), &model), QWYC_ERROR_FILE);
    const std::string message = qwyc_last_error();
    CHECK(message.find("[2J") != std::string::npos);
    CHECK(message.size() <= 2000 && message.ends_with("\xc3\xa9..."));
    for (const char c : message) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

TEST(messages_are_one_line_of_utf_8) {
    using qwyc::capi::one_line;
    CHECK_EQUAL(one_line("a\tb\nc\x7f"), "a b c ");
    CHECK_EQUAL(one_line("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xb3"),
                "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xb3");
    // U+009B begins a command to a terminal, U+2028 is the end of a line, U+202E turns the text.
    CHECK_EQUAL(one_line("\xc2\x9b[2J|\xe2\x80\xa8|\xe2\x80\xae|\xe2\x81\xa6"), " [2J| | | ");
    // No UTF-8: cut off, overlong, half of a surrogate pair, past the last character.
    CHECK_EQUAL(one_line("\xff|\xc3|\xc0\xaf|\xe0\x80\x80"), "?|?|??|???");
    CHECK_EQUAL(one_line("\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82"), "???|????|??");
    CHECK_EQUAL(one_line("12345", 5), "12345");
    CHECK_EQUAL(one_line("123456", 5), "12...");
    CHECK_EQUAL(one_line("1\xc3\xa9"
                         "456",
                         5),
                "1...");
    qwyc_model* model = nullptr;
    const std::string path = std::string(5000, 'x') + "\xff.qwyc";
    CHECK_EQUAL(qwyc_load(path.c_str(), &model), QWYC_ERROR_READ);
    const std::string message = qwyc_last_error();  // the path is shortened, not the reason
    CHECK(message.find("...: the file cannot be read: ") == 997 && message.size() < 1200);
}

#if QWYC_FLOAT_MODES
// All that a thread gets from a file in some mode of floating-point numbers.
std::vector<double> everything(const std::string& content, std::span<const double> numbers,
                               int64_t n, FloatMode::Bits mode) {
    std::vector<double> out;
    const auto add = [&](qwyc_status status, const auto& array) {
        out.push_back(status);
        if (status == QWYC_OK) out.insert(out.end(), array.begin(), array.end());
    };
    const auto usual = FloatMode::get();
    FloatMode::set(mode);
    mode = FloatMode::get();  // some bits may not change
    qwyc_model* model = nullptr;
    CHECK_EQUAL(qwyc_load_memory(content.data(), content.size(), &model), QWYC_OK);
    const int64_t width = qwyc_n_features(model), K = qwyc_n_scores(model);
    const qwyc_rows rows{numbers.data(), QWYC_FLOAT64, n, width, 0, 0};
    std::vector<int32_t> label(n), steps(n);
    std::vector<double> score(n * K), wide(n * (K + 1));
    add(qwyc_decide(model, &rows, 2, label.data(), steps.data(), score.data()), score);
    add(QWYC_OK, label), add(QWYC_OK, steps);
    for (int64_t i = 0; i < n; ++i) {
        std::vector<double> own(K);
        add(qwyc_decide_one_f64(model, &numbers[i * width], &label[0], &steps[0], own.data()), own);
    }
    std::vector<qwyc_column> columns(width);  // that overlap
    for (int64_t j = 0; j < width; ++j) columns[j] = {&numbers[j], QWYC_FLOAT64};
    add(qwyc_decide_columns(model, columns.data(), width, n, 1, label.data(), steps.data(),
                            score.data()),
        score);
    add(qwyc_decide_full(model, &rows, 1, label.data(), score.data()), score);
    add(qwyc_probabilities(model, &rows, 1, wide.data()), wide);
    add(qwyc_values(model, &rows, 1, wide.data()), wide);
    double code = 0;
    add(qwyc_code_of_number(model, 0, numbers[0], &code), std::vector{code});
    qwyc_free(model);
    const auto after = FloatMode::get();
    FloatMode::set(usual);
    constexpr FloatMode::Bits kFlags = 0x3f;  // what has happened, beside the mode
    CHECK_EQUAL(after | kFlags, mode | kFlags);
    return out;
}

TEST(the_mode_of_the_calling_thread_does_not_matter) {
    const auto usual = FloatMode::get();
    constexpr auto kDown = FloatMode::kRounding & -FloatMode::kRounding;  // the lower of two bits
    auto files = golden_files(QWYC_SMALL_FILES);
    for (const auto& path : golden_files()) files.push_back(path);
    for (const auto& path : files) {
        const std::string content = content_of(path);
        qwyc_model* model = nullptr;
        CHECK_EQUAL(qwyc_load_memory(content.data(), content.size(), &model), QWYC_OK);
        const int64_t n = 40, width = qwyc_n_features(model);
        qwyc_free(model);
        auto plain = random_rows(n, width), odd = plain;
        constexpr double kOdd[] = {std::numeric_limits<double>::quiet_NaN(), 1e300, 1e-310, 1e-40,
                                   -std::numeric_limits<double>::infinity()};
        for (size_t i = 0; i < odd.size(); i += 3) odd[i] = kOdd[i / 3 % std::size(kOdd)];
        for (const auto& numbers : {plain, odd}) {
            const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
            const auto expected = everything(content, numbers, n, usual);
            for (auto mode : {usual | FloatMode::kNoDenormals, usual | FloatMode::kRounding,
                              usual | kDown, usual | 2 * kDown, usual ^ FloatMode::kTraps}) {
                const auto found = everything(content, numbers, n, mode);
                CHECK(
                    std::equal(found.begin(), found.end(), expected.begin(), expected.end(), same));
            }
        }
    }
}
#endif

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
