// A small test harness: TEST(name) { CHECK(...); }. Every file of tests is one program, which runs
// all of its tests and fails where a check does.
#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*run)();
};

inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

// Checks may fail on any thread.
inline std::atomic<int>& failures() {
    static std::atomic<int> count{0};
    return count;
}

struct Register {
    Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline void fail(const char* file, int line, const std::string& what) {
    std::cerr << file << ":" << line << ": " << what << "\n";
    ++failures();
}

template <class A, class B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
    if (a == b) return;
    std::ostringstream message;
    message << text << ": " << a << " and " << b;
    fail(file, line, message.str());
}

// Numbers are compared by their bits: NaN equals itself, and -0 is not 0.
inline bool same(double a, double b) {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}
inline bool same(float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
template <std::integral T>
bool same(T a, T b) {
    return a == b;
}

// All entries are the same; the first that differs is reported, with what was compared.
template <class T>
void all_equal(std::span<const T> a, std::span<const T> b, const std::string& context,
               const char* file, int line) {
    if (a.size() != b.size())
        return fail(file, line,
                    context + ": " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                        " entries");
    for (size_t i = 0; i < a.size(); ++i)
        if (!same(a[i], b[i])) {
            std::ostringstream message;
            message.precision(17);
            message << context << ": entry " << i << " is " << +a[i] << " and " << +b[i];
            return fail(file, line, message.str());
        }
}

template <class T>
void all_equal(const std::vector<T>& a, const std::vector<T>& b, const std::string& context,
               const char* file, int line) {
    all_equal(std::span<const T>(a), std::span<const T>(b), context, file, line);
}

// `run` throws an exception whose message holds `wanted`.
template <class Run>
void throws(Run run, const std::string& wanted, const char* file, int line) {
    try {
        run();
    } catch (const std::exception& error) {
        const std::string got = error.what();
        if (got.find(wanted) == std::string::npos)
            fail(file, line, "expected \"" + wanted + "\", got \"" + got + "\"");
        return;
    }
    fail(file, line, "nothing was thrown; expected \"" + wanted + "\"");
}

inline int run_all() {
    for (const Test& test : tests()) {
        const int before = failures();
        try {
            test.run();
        } catch (const std::exception& error) {
            fail(test.name, 0, std::string("threw ") + error.what());
        }
        std::cout << (failures() == before ? "ok      " : "FAILED  ") << test.name << std::endl;
    }
    if (tests().empty()) fail("main", 0, "there are no tests");
    return failures() == 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                             \
    static void name();                                        \
    static const check::Register register_##name(#name, name); \
    static void name()

#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
    } while (false)
#define CHECK_EQUAL(a, b) check::equal(a, b, #a " == " #b, __FILE__, __LINE__)
#define CHECK_ALL_EQUAL(a, b, context) check::all_equal(a, b, context, __FILE__, __LINE__)
#define CHECK_THROWS(expression, message) \
    check::throws([&] { expression; }, message, __FILE__, __LINE__)
