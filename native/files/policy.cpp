#include "files/policy.hpp"

#include <cmath>
#include <limits>

namespace qwyc::files {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void check_order(std::span<const int32_t> order, std::span<const double> costs, int64_t T) {
    require(static_cast<int64_t>(order.size()) == T,
            "the policy is for a different number of base models");
    require(order.size() == costs.size(), "order and costs differ in length");
    std::vector<bool> seen(order.size(), false);
    for (const int32_t t : order) {
        require(t >= 0 && t < T && !seen[t], "order must name every base model exactly once");
        seen[t] = true;
    }
    for (const double cost : costs)
        require(std::isfinite(cost) && cost > 0, "costs must be positive numbers");
}

void read_thresholds(const Container& file, PolicyParts& policy) {
    policy.lower = file.values<double>("policy.lower");
    policy.upper = file.values<double>("policy.upper");
    require(
        policy.lower.size() == policy.order.size() && policy.upper.size() == policy.order.size(),
        "lower and upper must have one entry per base model");
    for (size_t r = 0; r < policy.lower.size(); ++r)
        require(policy.lower[r] <= policy.upper[r], "lower must not exceed upper at any step");
}

void read_estimates(const Container& file, PolicyParts& policy) {
    policy.slope = file.values<double>("estimates.slope");
    policy.begin = file.values<int64_t>("estimates.begin");
    policy.knots = file.values<double>("estimates.knots");
    policy.offsets = file.values<double>("estimates.offsets");
    const size_t T = policy.order.size(), n = policy.knots.size();
    require(policy.slope.size() == T && policy.begin.size() == T + 1 && policy.offsets.size() == n,
            "estimates need a slope per step, and an offset per knot");
    require(policy.begin[0] == 0 && policy.begin[T] == static_cast<int64_t>(n),
            "the knots of the steps do not follow each other");
    for (const auto values : {policy.slope, policy.knots, policy.offsets})
        for (const double value : values)
            require(std::isfinite(value), "estimates must be finite numbers");
    for (size_t r = 0; r < T; ++r) {
        require(policy.begin[r] <= policy.begin[r + 1] && policy.begin[r + 1] <= policy.begin[T],
                "the knots of the steps do not follow each other");
        for (int64_t i = policy.begin[r] + 1; i < policy.begin[r + 1]; ++i)
            require(policy.knots[i - 1] < policy.knots[i],
                    "the knots of a step must be in ascending order");
        const bool quits = policy.lower[r] > -kInf || policy.upper[r] < kInf;
        require(!quits || (r + 1 < T && policy.begin[r] < policy.begin[r + 1]),
                "rows quit at a step without an estimate of the full score");
    }
}

void read_leads(const Container& file, const char* name, int64_t K, bool from_zero,
                PolicyParts& policy) {
    const auto values = file.values<double>(name);
    const size_t T = policy.order.size();
    const auto& shape = file.tensor(name).shape;
    require(shape[0] == static_cast<int64_t>(T), "thresholds are for another number of steps");
    const int64_t columns = shape.size() == 1 ? 1 : shape[1];
    require(columns == 1 || columns == K, "thresholds are for another number of classes");
    for (size_t r = 0; r < T; ++r)
        for (int64_t k = 0; k < K; ++k) {
            const double lead = values[r * columns + (columns == 1 ? 0 : k)];
            require(from_zero ? lead >= 0 : lead > -kInf,
                    "thresholds must be numbers, and inf where no row quits");
            policy.lead.push_back(lead);
        }
    if (file.has("policy.drop")) {
        policy.drop = file.values<double>("policy.drop");
        require(policy.drop.size() == T, "drop must have one entry per base model");
        for (const double limit : policy.drop)
            require(limit >= 0, "drop must be numbers of at least 0");
    }
}

}  // namespace

Target target_of(const Json& facts) {
    const std::string& kind =
        one_of(at(facts, "kind"), {"two-classes", "many-classes", "one-class", "within"});
    return kind == "two-classes"    ? Target::kTwoClasses
           : kind == "many-classes" ? Target::kManyClasses
           : kind == "one-class"    ? Target::kOneClass
                                    : Target::kWithin;
}

PolicyParts read_policy(const Container& file, Target target, const Json& facts, int64_t T,
                        int64_t K) {
    PolicyParts policy;
    policy.target = target;
    policy.order = file.values<int32_t>("policy.order");
    check_order(policy.order, file.values<double>("policy.costs"), T);
    const bool by_class =
        policy.target == Target::kManyClasses || policy.target == Target::kOneClass;
    require(by_class == (K > 1), "the model does not have the scores that its target compares");
    if (policy.target == Target::kOneClass) {
        const int64_t only = count(at(facts, "only"));
        require(only < K, "the class of the filter is not one of the model's");
        policy.only = static_cast<int32_t>(only);
        read_leads(file, "policy.gap", K, false, policy);
    } else if (policy.target == Target::kManyClasses) {
        read_leads(file, "policy.lead", K, true, policy);
    } else {
        policy.threshold = number(at(facts, "threshold"));
        read_thresholds(file, policy);
    }
    if (policy.target == Target::kWithin) {
        read_estimates(file, policy);
        policy.tolerance = number(at(facts, "tolerance"));
        require(policy.tolerance > 0, "the tolerance must be above 0");
    }
    return policy;
}

}  // namespace qwyc::files
