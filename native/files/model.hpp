// The model of a `.qwyc` file: the schema of its rows, its base models as flat arrays, and what its
// scores mean. Everything that decides a row is checked, here or by the constructors in core/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/class_forest.hpp"
#include "core/combinations.hpp"
#include "core/forest.hpp"
#include "core/lattices.hpp"
#include "files/container.hpp"
#include "files/policy.hpp"
#include "files/schema.hpp"

namespace qwyc::files {

enum class Family : uint8_t { kTrees, kClassTrees, kLattices };

// From a full score to a value or a probability, as qwyc.model.output.Output has it.
struct OutputFacts {
    std::string kind = "identity";
    bool single = false;  // float32, otherwise float64
    double scale = 1.0;
};

// From a score to the probability of the positive class: qwyc.model.link.Link.
struct LinkFacts {
    std::string kind, form = "plain";
    bool single = false;
    double scale = 1.0;
};

// What a file says of its model. References are to the container.
struct ModelParts {
    Family family;
    Schema schema;
    Labels classes;  // none: a model of values
    double threshold = 0;
    std::string library;  // that the model was trained with; empty: qwyc itself
    LinkFacts link;
    std::optional<OutputFacts> output;
    std::string output_facts;  // the JSON text that the digest is over
    Rules rules;               // of trees
    Ties ties;                 // of class-trees
    bool mean = false;         // of lattices
    bool combined = false;     // some columns of trees are made from combinations of categories
    int64_t K = 1;             // scores
    int64_t T = 0;             // base models
};

// A whole file.
struct FileParts {
    ModelParts model;
    std::optional<PolicyParts> policy;  // none: a model that is evaluated in full
    std::string certificate;            // JSON; empty where there is none
};

FileParts read_parts(const Container& file);

// The arrays of the base models, which refer to the container.
template <class Real>
FlatTrees<Real> flat_trees(const Container& file, const ModelParts& model);
template <class Real>
FlatLattices<Real> flat_lattices(const Container& file);
ClassArrays class_arrays(const Container& file, const ModelParts& model);
CombinationArrays combination_arrays(const Container& file, const ModelParts& model);

// SHA-256 over everything of a model that decides a row, by which it is known.
std::string model_digest(const Container& file, const ModelParts& model);

// The digest that the model of a file has, whatever the file says.
std::string digest_of_model(const Container& file);

// Where a tensor of the model is, by its name without the kind of base models.
std::string tensor_name(const ModelParts& model, std::string_view name);

}  // namespace qwyc::files
