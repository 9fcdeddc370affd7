#include <atomic>
#include <stdexcept>
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

}  // namespace
