#include "files/tensors.hpp"

#include <algorithm>

namespace qwyc::files {

namespace {

struct Expected {
    std::string_view name;
    size_t axes;
    Type type;
    bool may_be_single = false;  // float32 too
};

constexpr Expected kTrees[] = {
    {"node_begin", 1, Type::kI64},     {"leaf_begin", 1, Type::kI64},
    {"feature", 1, Type::kI32},        {"threshold", 1, Type::kF64, true},
    {"left", 1, Type::kI32},           {"right", 1, Type::kI32},
    {"flags", 1, Type::kU8},           {"category_begin", 1, Type::kI64},
    {"category_words", 1, Type::kU32}, {"leaf_value", 1, Type::kF64},
    {"leaf_other", 1, Type::kF64}};
constexpr Expected kClassTrees[] = {{"tree_class", 1, Type::kI32},
                                    {"leaf_vector", 2, Type::kF64},
                                    {"step_begin", 1, Type::kI64},
                                    {"start", 1, Type::kF64}};
constexpr Expected kLattices[] = {{"calibrator_kind", 1, Type::kU8},
                                  {"calibrator_feature", 1, Type::kI32},
                                  {"point_begin", 1, Type::kI64},
                                  {"point", 1, Type::kF64, true},
                                  {"output", 1, Type::kF64, true},
                                  {"has_missing", 1, Type::kU8},
                                  {"missing_value", 1, Type::kF64, true},
                                  {"missing_output", 1, Type::kF64, true},
                                  {"other_output", 1, Type::kF64, true},
                                  {"interpolation", 1, Type::kU8},
                                  {"weight", 1, Type::kF64},
                                  {"input_begin", 1, Type::kI64},
                                  {"input", 1, Type::kI32},
                                  {"size", 1, Type::kI32},
                                  {"vertex_begin", 1, Type::kI64},
                                  {"vertex", 1, Type::kF64, true}};
constexpr Expected kCombinations[] = {
    {"code_begin", 1, Type::kI64}, {"code_hash", 1, Type::kU32},    {"is_category", 1, Type::kU8},
    {"part_begin", 1, Type::kI64}, {"part_kind", 1, Type::kU8},     {"part_feature", 1, Type::kI32},
    {"part_value", 1, Type::kF64}, {"table_of", 1, Type::kI32},     {"key_begin", 1, Type::kI64},
    {"key", 1, Type::kU64},        {"column_table", 1, Type::kI32}, {"value_begin", 1, Type::kI64},
    {"value", 1, Type::kF32}};
constexpr Expected kPolicy[] = {{"policy.order", 1, Type::kI32}, {"policy.costs", 1, Type::kF64}};
constexpr Expected kThresholds[] = {{"policy.lower", 1, Type::kF64},
                                    {"policy.upper", 1, Type::kF64}};
constexpr Expected kEstimates[] = {{"estimates.slope", 1, Type::kF64},
                                   {"estimates.begin", 1, Type::kI64},
                                   {"estimates.knots", 1, Type::kF64},
                                   {"estimates.offsets", 1, Type::kF64}};
constexpr Expected kPath[] = {{"path.penalty", 1, Type::kF64},
                              {"path.differences", 2, Type::kI64},
                              {"path.fit_differences", 2, Type::kI64},
                              {"path.mean_models", 1, Type::kF64},
                              {"path.mean_cost", 1, Type::kF64}};
constexpr Expected kPathThresholds[] = {{"path.lower", 2, Type::kF64},
                                        {"path.upper", 2, Type::kF64}};
// Each may be absent.
constexpr Expected kOfFeatures[] = {{"policy.feature_costs", 1, Type::kF64},
                                    {"certificate.stops", 1, Type::kI64}};
constexpr Expected kLaterPath[] = {{"path.exits", 2, Type::kI64},
                                   {"path.stops", 2, Type::kI64},
                                   {"path.group_sizes", 2, Type::kI64},
                                   {"path.group_begin", 1, Type::kI64},
                                   {"path.group_at", 1, Type::kI64},
                                   {"path.group_differences", 2, Type::kI64},
                                   {"path.prior_differences", 2, Type::kI64},
                                   {"path.prior_squares", 2, Type::kI64},
                                   {"path.window_classes", 2, Type::kI64},
                                   {"path.window_differences", 3, Type::kI64}};
constexpr Expected kDrop[] = {{"policy.drop", 1, Type::kF64}, {"path.drop", 2, Type::kF64}};

class Check {
  public:
    Check(const Container& file) : file_(file) {}

    void need(std::span<const Expected> all, const std::string& prefix = "") {
        for (const Expected& each : all) need(prefix + std::string(each.name), each);
    }
    void need(const std::string& name, const Expected& expected) {
        const Tensor& found = file_.tensor(name);
        const bool fits =
            found.type == expected.type || (expected.may_be_single && found.type == Type::kF32);
        if (!fits || found.shape.size() != expected.axes)
            throw FileError("tensor " + name +
                            " has another type or number of axes than it should");
        ++known_;
    }
    void allow(std::span<const Expected> all) {
        for (const Expected& each : all)
            if (file_.has(each.name)) need(std::string(each.name), each);
    }
    void done() const {
        require(known_ == file_.tensors().size(), "the file has tensors that are not known");
    }

  private:
    const Container& file_;
    size_t known_ = 0;
};

}  // namespace

std::string tensor_name(const ModelParts& model, std::string_view name) {
    const char* const kind = model.family == Family::kTrees        ? "trees."
                             : model.family == Family::kClassTrees ? "class-trees."
                                                                   : "lattices.";
    std::string out = model.combined ? "combined-" : "";
    out += kind;
    return out += name;
}

void check_tensors(const Container& file, const ModelParts& model,
                   const std::optional<Target>& target, const std::vector<std::string>& origins) {
    Check check(file);
    const Family family = model.family;
    const std::string prefix = tensor_name(model, "");
    if (family == Family::kLattices)
        check.need(kLattices, prefix);
    else
        check.need(kTrees, prefix);
    if (family == Family::kClassTrees) check.need(kClassTrees, prefix);
    if (model.combined) check.need(kCombinations, prefix);
    if (!target) return check.done();
    check.need(kPolicy);
    check.allow(kOfFeatures);
    for (const std::string& name : origins) check.need("origin." + name, {"", 1, Type::kU64});
    // Format 1 has three other names.
    const bool old = file.format() == 1;
    const bool has_path = file.has(old ? "path.price" : "path.penalty");
    if (has_path && old) {
        check.need("path.price", kPath[0]);
        check.need("path.flips", kPath[1]);
        check.need("path.fit_flips", kPath[2]);
        check.need(std::span(kPath).subspan(3));
    } else if (has_path) {
        check.need(kPath);
    }
    if (has_path) check.allow(kLaterPath);
    switch (*target) {
        case Target::kWithin:
            check.need(kEstimates);
            [[fallthrough]];
        case Target::kTwoClasses:
            check.need(kThresholds);
            if (has_path) check.need(kPathThresholds);
            break;
        case Target::kManyClasses:
            check.need("policy.lead", {"", 2, Type::kF64});
            if (has_path) check.need("path.lead", {"", 3, Type::kF64});
            check.allow(kDrop);
            break;
        case Target::kOneClass:
            check.need("policy.gap", {"", 1, Type::kF64});
            if (has_path) check.need("path.gap", {"", 2, Type::kF64});
    }
    check.done();
}

}  // namespace qwyc::files
