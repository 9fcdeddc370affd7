#include "files/model.hpp"

#include <cmath>

#include "files/tensors.hpp"

namespace qwyc::files {

namespace {

// Where each part of the header is; format 1 has them in other places.
struct Facts {
    const Json *schema, *base_models, *threshold, *classes, *link, *source, *digest, *output;
};

Facts facts_of(const Container& file) {
    const Json& body = file.body();
    if (file.format() == 1)
        return {&at(body, "inputs"),       &body,
                &at(body, "threshold"),    &at(body, "classes"),
                &at(body, "link"),         &at(body, "source"),
                &at(body, "model_digest"), nullptr};
    const Json& model = at(body, "model");
    return {&at(model, "schema"),  &at(model, "base_models"), &at(model, "threshold"),
            &at(model, "classes"), &at(model, "link"),        &at(model, "source"),
            &at(model, "digest"),  model.find("output")};
}

void read_family(const Container& file, ModelParts& model) {
    model.family = Family::kTrees;
    if (file.format() == 1) return;
    const std::string& kind =
        one_of(at(at(file.body(), "model"), "kind"),
               {"trees", "class-trees", "combined-trees", "combined-class-trees", "lattices"});
    model.combined = kind.starts_with("combined-");
    model.family = kind == "lattices"              ? Family::kLattices
                   : kind.ends_with("class-trees") ? Family::kClassTrees
                                                   : Family::kTrees;
}

Ties ties_of(const Json& facts) {
    require(list(facts).size() == 3, "ties are a kind, a type and a scale");
    const std::string &kind = text(facts.items[0]), &dtype = text(facts.items[1]);
    constexpr struct {
        std::string_view kind, dtype;
    } known[] = {{"scores", "float64"},  {"softmax", "float64"},      {"softmax", "float32"},
                 {"sigmoid", "float64"}, {"exponentials", "float32"}, {"softmax", "mixed"}};
    for (size_t i = 0; i < std::size(known); ++i)
        if (known[i].kind == kind && known[i].dtype == dtype)
            return {static_cast<Ties::Kind>(i), number(facts.items[2])};
    throw FileError("'" + kind + "' in '" + dtype + "' is not a known rule for ties");
}

void read_rules(const Json& facts, ModelParts& model) {
    Rules& rules = model.rules;
    if (model.family == Family::kLattices) {
        rules.base = number(at(facts, "base"));
        model.mean = flag(at(facts, "mean"));
        return;
    }
    const std::string& summation = one_of(
        at(facts, "summation"), {"float32", "float64", "shares", "float64_late", "float32_late"});
    rules.summation = summation == "float32"        ? Summation::kFloat32
                      : summation == "float64"      ? Summation::kFloat64
                      : summation == "shares"       ? Summation::kShares
                      : summation == "float64_late" ? Summation::kFloat64Late
                                                    : Summation::kFloat32Late;
    rules.less_equal = flag(at(facts, "less_equal"));
    rules.truncates = flag(at(facts, "truncates"));
    rules.divisor = number(at(facts, "divisor"));
    if (const Json* scale = facts.find("scale")) rules.scale = number(*scale);
    if (model.family == Family::kTrees)
        rules.base = number(at(facts, "base"));
    else
        model.ties = ties_of(at(facts, "ties"));
}

LinkFacts link_of(const Json& facts) {
    LinkFacts link;
    link.kind = one_of(at(facts, "kind"), {"logistic", "identity", "none", "piecewise"});
    link.scale = number(at(facts, "scale"));
    link.single = one_of(at(facts, "dtype"), {"float32", "float64"}) == "float32";
    if (link.kind == "piecewise") {
        const auto points = numbers(at(facts, "points")), outputs = numbers(at(facts, "outputs"));
        one_of(at(facts, "means"), {"identity", "logistic", "none"});
        require(points.size() >= 2 && points.size() == outputs.size(),
                "a piecewise link needs two or more points and an output for each");
        for (size_t i = 1; i < points.size(); ++i)
            require(points[i - 1] < points[i] && outputs[i - 1] <= outputs[i],
                    "the points of a piecewise link must rise, and its outputs not fall");
    } else if (const Json* form = facts.find("form")) {
        link.form = one_of(*form, {"plain", "softmax", "mirrored", "approximate"});
    }
    return link;
}

void read_output(const Json& facts, ModelParts& model) {
    OutputFacts output;
    output.kind = text(at(facts, "kind"));
    output.single = one_of(at(facts, "dtype"), {"float32", "float64"}) == "float32";
    output.scale = number(at(facts, "scale"));
    require(output.scale > 0, "the scale of outputs is not above 0");
    const Json& scale = at(facts, "scale");
    model.output_facts = "{\"dtype\": " + std::string(at(facts, "dtype").raw) +
                         ", \"kind\": " + std::string(at(facts, "kind").raw) +
                         ", \"scale\": " + std::string(scale.raw) +
                         (scale.kind == Json::Kind::kInteger ? ".0}" : "}");
    model.output = output;
}

// How many scores and base models there are, once the lengths that say so have been checked.
void count_models(const Container& file, ModelParts& model) {
    const auto length = [&](std::string_view name) {
        return file.tensor(tensor_name(model, name)).shape[0];
    };
    if (model.family == Family::kClassTrees) {
        model.K = length("start");
        model.T = length("step_begin") - 1;
        require(model.K >= 2 && model.K < 1 << 20 && model.T >= 1,
                "there are too few classes, trees or base models, or too many");
        const Tensor& vector = file.tensor(tensor_name(model, "leaf_vector"));
        require(vector.shape[1] == model.K && length("leaf_other") == 0,
                "the leaves of the trees are not those of the file");
        const bool has_vectors = length("tree_class") == 0;
        require((vector.shape[0] > 0) == has_vectors && (length("leaf_value") == 0) == has_vectors,
                "leaves must hold one number, or one for each class");
    } else {
        model.T = model.family == Family::kTrees ? length("node_begin") - 1 : length("weight");
        require(model.T >= 1, "there must be a base model");
    }
}

void check_types(const Container& file, const ModelParts& model) {
    // Rows with combinations are of float64, and trees see them as float32.
    require(!model.combined || !model.schema.single, "the combinations are for different rows");
    const Type type = model.schema.single || model.combined ? Type::kF32 : Type::kF64;
    const auto check = [&](std::string_view name) {
        if (file.tensor(tensor_name(model, name)).type != type)
            throw FileError("the schema's dtype is not the dtype of " + std::string(name));
    };
    if (model.family != Family::kLattices) return check("threshold");
    for (const char* name :
         {"point", "output", "missing_value", "missing_output", "other_output", "vertex"})
        check(name);
}

// Codes must stand for the same hashes as in the schema.
void check_codes(const Container& file, const ModelParts& model) {
    const CombinationArrays made = combination_arrays(file, model);
    const Schema& schema = model.schema;
    const auto n = static_cast<size_t>(schema.n_features);
    require(made.is_category.size() == n && made.code_begin.size() == n + 1,
            "the combinations are for different rows");
    for (size_t j = 0; j < n; ++j) {
        const auto found = schema.categories.find(static_cast<int64_t>(j));
        bool same = (made.is_category[j] != 0) == (found != schema.categories.end());
        int64_t at = made.code_begin[j];
        const int64_t end = made.code_begin[j + 1];
        same &= at >= 0 && end >= at && end <= static_cast<int64_t>(made.code_hash.size());
        if (same && found != schema.categories.end())
            for (const Label& label : found->second) {
                if (label.kind == Label::Kind::kNull) continue;
                same = same && at < end && label.kind == Label::Kind::kInteger &&
                       label.whole == made.code_hash[static_cast<size_t>(at++)];
            }
        require(same && at == end, "the combinations are for different categories");
    }
}

// Whatever the file says of its digest. `model` knows its family.
ModelParts read_unproven(const Container& file, const Facts& facts, ModelParts model) {
    model.schema = Schema::of(*facts.schema, file.format());
    model.classes = Labels::of(*facts.classes);
    model.threshold = number(*facts.threshold);
    if (facts.source->kind != Json::Kind::kNull) {
        model.library = text(at(*facts.source, "library"));
        text(at(*facts.source, "version")), text(at(*facts.source, "kind"));
    }
    model.link = link_of(*facts.link);
    if (facts.output) read_output(*facts.output, model);
    read_rules(*facts.base_models, model);
    check_types(file, model);
    count_models(file, model);
    const auto n_classes = static_cast<int64_t>(model.classes.values.size());
    require(n_classes == 0 || n_classes == (model.K == 1 ? 2 : model.K),
            "there must be a label for each class");
    return model;
}

// `known` knows its family.
ModelParts read_model(const Container& file, const ModelParts& known) {
    const Facts facts = facts_of(file);
    ModelParts model = read_unproven(file, facts, known);
    if (model_digest(file, model) != text(*facts.digest))
        throw FileError("the model does not match its digest");
    if (model.combined) check_codes(file, model);
    return model;
}

// What a file holds, once its tensors are those that it should have.
struct Layout {
    ModelParts known;              // its family
    std::optional<Target> target;  // none: a model and nothing else
};

Layout checked_layout(const Container& file) {
    const Json& body = file.body();
    ModelParts known{};
    read_family(file, known);
    const bool old = file.format() == 1;
    if (!old && body.keys.size() == 1) {
        check_tensors(file, known, std::nullopt, {});
        return {known, std::nullopt};
    }
    const Target target = old ? Target::kTwoClasses : target_of(at(body, "target"));
    const Json& evidence = at(body, "evidence");
    require((evidence.kind == Json::Kind::kNull) != file.has(old ? "path.price" : "path.penalty"),
            "a path needs its evidence, and the evidence its path");
    std::vector<std::string> origins;
    if (const Json* rows = old ? nullptr : body.find("origins")) {
        require(rows->kind == Json::Kind::kObject, "origins must be an object");
        for (const std::string& name : rows->keys)
            if (name != "independent_repeats") origins.push_back(name);
    }
    check_tensors(file, known, target, origins);
    return {known, target};
}

}  // namespace

std::string digest_of_model(const Container& file) {
    return model_digest(file, read_unproven(file, facts_of(file), checked_layout(file).known));
}

FileParts read_parts(const Container& file) {
    const auto [known, target] = checked_layout(file);
    if (!target) return {read_model(file, known), std::nullopt, ""};
    const Json& body = file.body();
    const bool old = file.format() == 1;
    FileParts parts{read_model(file, known), std::nullopt, ""};
    const ModelParts& model = parts.model;
    const auto n_classes = static_cast<int64_t>(model.classes.values.size());
    require(n_classes > 0 || *target == Target::kWithin,
            "a policy is for a model of classes, and this one has none");
    const Json& facts = at(body, old ? "policy" : "target");
    parts.policy = read_policy(file, *target, facts, model.T, model.K);
    require(*target != Target::kWithin || parts.policy->threshold == model.threshold,
            "outputs within a tolerance must use the model's own threshold");
    const Json& certificate = at(body, "certificate");
    read_certificate(file, certificate, n_classes, *parts.policy);
    if (!old) {
        flag(at(at(body, "evaluation"), "quits"));
        one_of(at(at(body, "evaluation"), "decided_by"),
               {"model", "measurement", "request", "default", "unknown"});
    }
    parts.certificate = certificate.raw;
    return parts;
}

template <class Real>
FlatTrees<Real> flat_trees(const Container& file, const ModelParts& model) {
    const auto name = [&](std::string_view of) { return tensor_name(model, of); };
    FlatTrees<Real> flat{};
    flat.node_begin = file.values<int64_t>(name("node_begin"));
    flat.leaf_begin = file.values<int64_t>(name("leaf_begin"));
    flat.feature = file.values<int32_t>(name("feature"));
    flat.threshold = file.values<Real>(name("threshold"));
    flat.left = file.values<int32_t>(name("left"));
    flat.right = file.values<int32_t>(name("right"));
    flat.flags = file.values<uint8_t>(name("flags"));
    flat.category_begin = file.values<int64_t>(name("category_begin"));
    flat.category_words = file.values<uint32_t>(name("category_words"));
    flat.leaf_value = file.values<double>(name("leaf_value"));
    flat.leaf_other = file.values<double>(name("leaf_other"));
    return flat;
}

template <class Real>
FlatLattices<Real> flat_lattices(const Container& file) {
    const auto name = [](std::string_view of) { return "lattices." + std::string(of); };
    FlatLattices<Real> flat{};
    flat.calibrator_kind = file.values<uint8_t>(name("calibrator_kind"));
    flat.calibrator_feature = file.values<int32_t>(name("calibrator_feature"));
    flat.point_begin = file.values<int64_t>(name("point_begin"));
    flat.point = file.values<Real>(name("point"));
    flat.output = file.values<Real>(name("output"));
    flat.has_missing = file.values<uint8_t>(name("has_missing"));
    flat.missing_value = file.values<Real>(name("missing_value"));
    flat.missing_output = file.values<Real>(name("missing_output"));
    flat.other_output = file.values<Real>(name("other_output"));
    flat.interpolation = file.values<uint8_t>(name("interpolation"));
    flat.weight = file.values<double>(name("weight"));
    flat.input_begin = file.values<int64_t>(name("input_begin"));
    flat.input = file.values<int32_t>(name("input"));
    flat.size = file.values<int32_t>(name("size"));
    flat.vertex_begin = file.values<int64_t>(name("vertex_begin"));
    flat.vertex = file.values<Real>(name("vertex"));
    return flat;
}

ClassArrays class_arrays(const Container& file, const ModelParts& model) {
    const auto name = [&](std::string_view of) { return tensor_name(model, of); };
    const auto of_tree = file.values<int32_t>(name("tree_class"));
    return {static_cast<int32_t>(model.K),
            of_tree,
            file.values<int64_t>(name("step_begin")),
            file.values<double>(name(of_tree.empty() ? "leaf_vector" : "leaf_value")),
            file.values<double>(name("start")),
            model.ties};
}

CombinationArrays combination_arrays(const Container& file, const ModelParts& model) {
    const auto name = [&](std::string_view of) { return tensor_name(model, of); };
    return {file.values<int64_t>(name("code_begin")),   file.values<uint32_t>(name("code_hash")),
            file.values<uint8_t>(name("is_category")),  file.values<int64_t>(name("part_begin")),
            file.values<uint8_t>(name("part_kind")),    file.values<int32_t>(name("part_feature")),
            file.values<double>(name("part_value")),    file.values<int32_t>(name("table_of")),
            file.values<int64_t>(name("key_begin")),    file.values<uint64_t>(name("key")),
            file.values<int32_t>(name("column_table")), file.values<int64_t>(name("value_begin")),
            file.values<float>(name("value"))};
}

template FlatTrees<float> flat_trees(const Container&, const ModelParts&);
template FlatTrees<double> flat_trees(const Container&, const ModelParts&);
template FlatLattices<float> flat_lattices(const Container&);
template FlatLattices<double> flat_lattices(const Container&);

}  // namespace qwyc::files
