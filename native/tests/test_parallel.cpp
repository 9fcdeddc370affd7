#include <atomic>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "core/parallel.hpp"
#include "tests/check.hpp"

namespace {

using namespace qwyc;

TEST(every_index_is_visited_once) {
    for (int threads : {1, 2, 3, 16})
        for (int64_t n : {0, 1, 5, 64, 1000})
            for (int64_t chunk : {1, 7, 2000}) {
                std::vector<std::atomic<int>> visits(n);
                parallel_for(n, chunk, threads, [&](int64_t begin, int64_t end) {
                    CHECK(begin % chunk == 0 && end - begin <= chunk && begin < end);
                    for (int64_t i = begin; i < end; ++i) ++visits[i];
                });
                for (const auto& count : visits) CHECK_EQUAL(count.load(), 1);
            }
}

TEST(every_thread_has_its_own_copy_of_the_body) {
    std::atomic<int64_t> total{0};
    parallel_for(1000, 1, 4, [&total, calls = int64_t{0}](int64_t, int64_t) mutable {
        ++calls;  // a data race if threads shared it
        ++total;
    });
    CHECK_EQUAL(total.load(), 1000);
}

TEST(an_exception_reaches_the_caller_and_the_other_chunks_are_done) {
    for (int threads : {1, 2, 4}) {
        std::atomic<int> done{0};
        CHECK_THROWS(parallel_for(100, 1, threads,
                                  [&](int64_t i, int64_t) {
                                      if (i == 3) throw std::runtime_error("chunk 3");
                                      ++done;
                                  }),
                     "chunk 3");
        CHECK(done <= 99);
        if (threads > 1) CHECK_EQUAL(done.load(), 99);  // only the thread that threw stops
    }
}

TEST(every_thread_may_throw) {
    CHECK_THROWS(parallel_for(64, 1, 8, [](int64_t, int64_t) { throw std::bad_alloc(); }),
                 "bad_alloc");
}

// What goes wrong where no memory, or no thread, is left after some.
template <class Error>
struct FailAfter {
    int* left;

    template <class Work>
    std::jthread operator()(const Work& work) const {
        if ((*left)-- <= 0) throw Error();
        return std::jthread(work);
    }
};

struct NoThread : std::system_error {
    NoThread()
        : std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)) {}
};

template <class Error>
void check_work_completes() {
    for (int started : {0, 1, 3}) {
        int left = started;
        std::vector<std::atomic<int>> visits(500);
        parallel_for(
            500, 3, 8,
            [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) ++visits[i];
            },
            FailAfter<Error>{&left});
        for (const auto& count : visits) CHECK_EQUAL(count.load(), 1);
    }
}

TEST(work_completes_where_threads_cannot_start) {
    check_work_completes<NoThread>();
    check_work_completes<std::bad_alloc>();
}

TEST(an_exception_while_threads_cannot_start_reaches_the_caller) {
    int left = 1;
    CHECK_THROWS(parallel_for(
                     100, 1, 8, [](int64_t, int64_t) { throw std::runtime_error("from the body"); },
                     FailAfter<std::bad_alloc>{&left}),
                 "from the body");
}

TEST(calls_may_be_nested) {
    std::vector<std::atomic<int>> visits(12 * 40);
    parallel_for(12, 1, 3, [&](int64_t outer, int64_t) {
        parallel_for(40, 5, 2, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) ++visits[outer * 40 + i];
        });
    });
    for (const auto& count : visits) CHECK_EQUAL(count.load(), 1);
}

#if QWYC_FLOAT_MODES
TEST(threads_compute_with_denormals_whatever_the_callers_mode) {
    const auto before = FloatMode::get(), changed = before | FloatMode::kNoDenormals;
    FloatMode::set(changed);
    volatile float callers = 1e-45f;
    volatile bool gone = callers * 1.0f == 0.0f;  // compared here, not after the mode is restored
    std::atomic<int> zeros{0};
    parallel_for(64, 1, 4, [&](int64_t, int64_t) {
        volatile float smallest = 1e-45f;
        if (smallest * 1.0f == 0.0f) ++zeros;
    });
    const auto after = FloatMode::get();
    FloatMode::set(before);
    CHECK(gone);
    CHECK_EQUAL(zeros.load(), 0);
    CHECK_EQUAL(after & changed, changed);  // and the caller's mode is as it was
}
#endif

}  // namespace
