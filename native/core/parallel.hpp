// A parallel loop over small chunks. The result of a chunk does not depend on the thread that
// computes it, so results are the same on any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/float_mode.hpp"

namespace qwyc {

// Starts a thread that runs `work`, or throws. Tests replace it.
struct StartThread {
    template <class Work>
    std::jthread operator()(const Work& work) const {
        return std::jthread(work);
    }
};

// Calls body(begin, end) for consecutive chunks of [0, n). Every thread, the caller's included,
// gets its own copy of `body`, so scratch space belongs in the closure. The first exception is
// rethrown once all threads have ended.
template <class Body, class Start = StartThread>
void parallel_for(int64_t n, int64_t chunk, int threads, const Body& body,
                  const Start& start = {}) {
    const int64_t chunks = (n + chunk - 1) / chunk;
    const int64_t workers = std::min<int64_t>(std::max(threads, 1), chunks);
    std::atomic<int64_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;
    const auto work = [&] {
        const PlainFloats plain;
        try {
            Body mine = body;
            for (int64_t i = next++; i < chunks; i = next++)
                mine(i * chunk, std::min(n, (i + 1) * chunk));
        } catch (...) {
            const std::lock_guard lock(error_mutex);
            if (!error) error = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> pool;  // the destructor joins the threads
        try {
            for (int64_t i = 1; i < workers; ++i) pool.push_back(start(work));
        } catch (...) {
            // No more threads, or no memory for one: the threads that have started, and the calling
            // thread, do all of the work.
        }
        if (workers > 0) work();
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace qwyc
