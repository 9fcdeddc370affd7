// Every allocation of the engines fails once: the call throws std::bad_alloc, or gives the right
// answer without that memory. Nothing is left behind that a later call would trip over.
#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <thread>

#if defined(_WIN32)
#include <malloc.h>
#endif

#include "tests/engines.hpp"

namespace {

// Allocations until one fails; negative: none does.
std::atomic<int64_t> left{-1};
std::atomic<bool> failed{false};

void* allocate(size_t size, size_t alignment) {
    if (left.load() >= 0 && left.fetch_sub(1) == 0) {
        failed = true;
        throw std::bad_alloc();
    }
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
#if defined(_WIN32)
    void* found = _aligned_malloc(rounded ? rounded : alignment, alignment);
#else
    void* found = std::aligned_alloc(alignment, rounded ? rounded : alignment);
#endif
    if (!found) throw std::bad_alloc();
    return found;
}

void release(void* data) {
#if defined(_WIN32)
    _aligned_free(data);
#else
    std::free(data);
#endif
}

}  // namespace

constexpr size_t kLeast = alignof(std::max_align_t);

// All forms, as sanitizers have their own for each.
void* operator new(size_t size) {
    return allocate(size, kLeast);
}
void* operator new[](size_t size) {
    return allocate(size, kLeast);
}
void* operator new(size_t size, std::align_val_t alignment) {
    return allocate(size, std::max(static_cast<size_t>(alignment), kLeast));
}
void* operator new[](size_t size, std::align_val_t alignment) {
    return allocate(size, std::max(static_cast<size_t>(alignment), kLeast));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    try {
        return allocate(size, kLeast);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void* operator new[](size_t size, const std::nothrow_t& nothrow) noexcept {
    return operator new(size, nothrow);
}
void operator delete(void* data) noexcept {
    release(data);
}
void operator delete[](void* data) noexcept {
    release(data);
}
void operator delete(void* data, size_t) noexcept {
    release(data);
}
void operator delete[](void* data, size_t) noexcept {
    release(data);
}
void operator delete(void* data, const std::nothrow_t&) noexcept {
    release(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
    release(data);
}
void operator delete[](void* data, std::align_val_t) noexcept {
    release(data);
}
void operator delete(void* data, size_t, std::align_val_t) noexcept {
    release(data);
}
void operator delete[](void* data, size_t, std::align_val_t) noexcept {
    release(data);
}

namespace {

using namespace qwyc;
using namespace qwyc::tests;

struct Found {
    Decided decided;
    std::vector<double> full;
};

// What the engines say of a problem, laid out anew, where an allocation fails after so many others.
// Nothing where memory was missing.
template <class Real>
std::optional<Found> evaluate(const EngineProblem<Real, float>& problem, int threads,
                              int64_t allocations) {
    std::optional<Found> found{{Decided(problem.n), std::vector<double>(problem.n, -1)}};
    const int64_t width = problem.trees.n_features;
    const RowsView<float> rows{problem.rows.data(), problem.n, width, width, 1};
    bool is_missing = false;
    // A thread of its own begins without the scratch space of earlier calls.
    const auto run = [&] {
        left = allocations;
        try {
            const Forest<Real> forest(problem.trees.flat(), problem.trees.n_features,
                                      problem.trees.rules);
            const FullEngine<Real> engine(forest);
            const QuitEngine<Real> quitter(engine, problem.policy.view());
            quitter.decide(rows, found->decided.out(), threads);
            engine.score(rows, nullptr, found->full.data(), threads);
        } catch (const std::bad_alloc&) {
            is_missing = true;
        }
        left = -1;  // the end of the thread is not of interest
    };
    std::thread(run).join();
    if (is_missing) found.reset();
    return found;
}

template <class Real>
void fail_each(const Shape& shape, uint64_t seed, int threads) {
    Trees<Real> trees = random_trees<Real>(seed, shape);
    auto rows = random_rows<float>(seed, 70, trees.n_features);
    const EngineProblem<Real, float> problem(std::move(trees), std::move(rows), seed);
    int64_t k = 0, refused = 0;
    for (;; ++k) {
        failed = false;
        const std::optional<Found> found = evaluate(problem, threads, k);
        if (found) {
            check_decided(found->decided, problem.expected, "allocation " + std::to_string(k));
            check::all_equal(std::span<const double>(found->full), std::span(problem.full), "full",
                             __FILE__, __LINE__);
        } else {
            ++refused;
            CHECK(failed);
        }
        if (!failed) break;
    }
    CHECK(k > 20);
    CHECK(refused > 20);
}

TEST(every_allocation_of_small_trees_fails_once) {
    fail_each<float>({.n_trees = 6, .depth = 4}, 1, 1);
    fail_each<double>({.n_trees = 6, .depth = 4}, 2, 1);
}

TEST(every_allocation_of_large_trees_fails_once) {
    fail_each<float>({.n_trees = 3, .depth = 8, .leaf_stop = 0.02}, 3, 1);
    fail_each<double>({.n_trees = 2, .depth = 8, .leaf_stop = 0.02, .special = false}, 4, 1);
}

TEST(every_allocation_of_two_threads_fails_once) {
    fail_each<float>({.n_trees = 6, .depth = 4}, 5, 2);
}

}  // namespace
