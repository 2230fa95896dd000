// SPDX-License-Identifier: Apache-2.0
// Names, parameters and presets (SPEC 0, SPEC 8), and an objective that a user might write.
#include "fungi/objective/factory.h"

#include <fmt/format.h>

#include <thread>

#include "fungi/base/cpu.h"
#include "reference.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

double number(const Objective& objective, const std::string& name) {
  for (const Parameter& parameter : objective.parameters())
    if (parameter.name == name) return std::get<double>(parameter.value);
  throw std::runtime_error("no parameter " + name);
}

ObjectiveContext context(Preset preset = Preset::native) {
  ObjectiveContext c;
  c.embedding_width = 16;
  c.token_width = 12;
  c.preset = preset;
  return c;
}

// "simclr:temperature=0.07,negatives=256": every parameter, in the form that make_objective()
// reads. `changed`: one of them with another value.
std::string specification(const Objective& objective, const Parameter& changed = {}) {
  std::string text;
  for (const Parameter& own : objective.parameters()) {
    const auto& [name, value] = own.name == changed.name ? changed : own;
    text += fmt::format("{}{}=", text.empty() ? ":" : ",", name);
    std::visit([&](const auto& v) { text += fmt::format("{}", v); }, value);
  }
  return objective.name() + text;
}

TEST(Factory, MakesEveryObjectiveAndItsSpecificationReadsBack) {
  for (const Preset preset : {Preset::native, Preset::paper, Preset::lib})
    for (const std::string& name : objective_names(SampleKind::image)) {
      const auto objective = make_objective(name, context(preset));
      EXPECT_EQ(objective->name(), name);
      EXPECT_GE(objective->views().size(), 1u);
      const std::string text = specification(*objective);
      EXPECT_EQ(specification(*make_objective(text, context(Preset::native))), text);
      // A manifest has those that stores have always had.
      EXPECT_GE(default_parameters(name, preset).size(), objective->parameters().size());
    }
}

TEST(Factory, ALabelMakesAnotherOneWithHeadsOfItsOwn) {
  const auto plain = make_objective("dino", context());
  const auto warm = make_objective("dino_warm:student_temperature=0.2", context());
  EXPECT_EQ(warm->name(), "dino_warm");
  EXPECT_EQ(number(*warm, "student_temperature"), 0.2);
  EXPECT_EQ(specification(*make_objective(specification(*warm), context())), specification(*warm));
  EXPECT_EQ(warm->views().size(), plain->views().size());
  EXPECT_EQ(warm->views()[0].draw, plain->views()[0].draw);
  const auto heads = plain->state(), others = warm->state();
  ASSERT_EQ(heads.size(), others.size());
  EXPECT_NE(heads[0].values(0, 0), others[0].values(0, 0));
  EXPECT_EQ(make_objective("dino_warm", context())->state()[0].values(0, 0),
            others[0].values(0, 0));
  EXPECT_THROW(make_objective("dino_", context()), Error);
  EXPECT_THROW(make_objective("dino_A", context()), Error);
  EXPECT_THROW(make_objective("what_b", context()), Error);
}

TEST(Factory, ReadsParameters) {
  const auto kl = make_objective("kl:temperature=2.5,width=10,direction=model_first", context());
  EXPECT_EQ(number(*kl, "temperature"), 2.5);
  EXPECT_EQ(number(*kl, "width"), 10);
  EXPECT_EQ(specification(*kl),
            "kl:temperature=2.5,width=10,direction=model_first,statistics=model,squash=false");
  EXPECT_EQ(number(*make_objective("dino:local_crops=4", context()), "local_crops"), 4);
}

TEST(Factory, SplitsAListAsPeopleTypeIt) {
  using List = std::vector<std::string>;
  EXPECT_EQ(split_objectives("kl"), List{"kl"});
  EXPECT_EQ(split_objectives("kl,dino"), (List{"kl", "dino"}));
  EXPECT_EQ(split_objectives("simclr:negatives=64,width=96"), List{"simclr:negatives=64,width=96"});
  EXPECT_EQ(split_objectives("kl,simclr:negatives=64,width=96,dino_b:width=8,ibot"),
            (List{"kl", "simclr:negatives=64,width=96", "dino_b:width=8", "ibot"}));
  EXPECT_EQ(split_objectives("kl:,width=8"), List{"kl:,width=8"});  // make_objective() refuses it
  EXPECT_EQ(split_objectives("kl:direction=a:b"), List{"kl:direction=a:b"});
}

TEST(Factory, AListWithHolesOrStrayParametersIsRefused) {
  for (const char* text : {"", ",", "kl,,dino", "kl,dino,", ",kl", "width=8", "width=8,kl"})
    EXPECT_ERROR("choose from: kl, dino, simclr", split_objectives(text));
  EXPECT_ERROR("write simclr:negatives=64", split_objectives("kl,simclr,negatives=64"));
  for (const std::string& one : split_objectives("klein,dino of,kl"))
    if (one != "kl") EXPECT_ERROR("choose from: kl, dino", make_objective(one, context()));
}

TEST(Factory, TheDenominatorFollowsATemperatureGivenAlone) {
  EXPECT_EQ(number(*make_objective("simclr:temperature=0.2", context()), "denominator_temperature"),
            0.2);
  EXPECT_EQ(number(*make_objective("simclr:temperature=0.2,denominator_temperature=1", context()),
                   "denominator_temperature"),
            1);
  EXPECT_EQ(number(*make_objective("simclr:temperature=0.2", context(Preset::lib)),
                   "denominator_temperature"),
            1);
}

// All that is seen of an objective from outside: what it asks for, what it keeps, what it computes
// from the same numbers with the same heads.
std::vector<double> behaviour(const std::string& text) {
  constexpr size_t kTokens = 3, kPatchViews = 6, kSupport = 20;
  const auto objective = make_objective(text, context());
  std::vector<double> all;
  const auto add_request = [&](const ViewRequest& r) {
    all.insert(all.end(),
               {double(r.plan.index()), double(r.gradient), double(r.masked_views), r.mask_ratio});
    if (const auto* p = std::get_if<WholeImage>(&r.plan))
      all.insert(all.end(), {double(p->statistics), double(p->squash)});
    if (const auto* p = std::get_if<ImageCrops>(&r.plan))
      all.insert(all.end(),
                 {double(p->global_crops), double(p->local_crops), double(p->statistics)});
    if (const auto* p = std::get_if<ImagePatches>(&r.plan))
      all.insert(all.end(),
                 {double(p->patch_count), double(p->stride_scale), double(p->statistics)});
  };
  size_t views = 0;
  for (const ViewRequest& r : objective->views()) {
    add_request(r);
    views += std::holds_alternative<WholeImage>(r.plan)     ? 1
             : std::holds_alternative<ImagePatches>(r.plan) ? kPatchViews
                                                            : view_counts(r.plan, text).all();
  }
  if (const Support support = objective->support(); support.samples > 0) {
    all.push_back(double(support.samples));
    add_request(support.views);
    const bool crops = std::holds_alternative<ImageCrops>(support.views.plan);
    const size_t per_sample = crops ? view_counts(support.views.plan, text).global : 2;
    Matrix<float> kept(kSupport * per_sample, objective->support_width(16));
    objective->reduce_support(
        reference::matrix_of<float>(reference::random_rows(kept.rows(), 16, 1)), kept);
    Pool pool(1);
    objective->prepare(kept, per_sample, pool);
  }
  const auto add_values = [&](const Matrix<float>& m) {
    all.insert(all.end(), {double(m.rows()), double(m.cols())});
    all.insert(all.end(), m.data(), m.data() + m.rows() * m.cols());
  };
  for (const NamedMatrix& m : objective->state()) add_values(m.values);
  const Matrix<float> e = reference::matrix_of<float>(reference::random_rows(views, 16, 2)),
                      tokens = reference::matrix_of<float>(
                          reference::random_rows(views * kTokens, 12, 3));
  const std::vector<uint8_t> masked(views * kTokens, 1);
  std::vector<size_t> offsets;
  for (size_t v = 0; v <= views; ++v) offsets.push_back(v * kTokens);
  Matrix<float> g(views, 16), d_tokens(views * kTokens, 12);
  all.push_back(objective->loss_and_gradient({e, tokens, masked, offsets}, {g, d_tokens}));
  add_values(g);
  return all;
}

// Another value that is as good.
Parameter another(const Parameter& parameter) {
  const auto& [name, value] = parameter;
  if (const double* number = std::get_if<double>(&value))
    return {name, name == "patch_count" ? 9 : 2 * *number};
  if (name == "direction") return {name, std::string("model_first")};
  return {name, std::string(name == "statistics" ? "imagenet" : "true")};
}

TEST(Factory, EveryParameterHasAnEffect) {
  for (const char* base :
       {"kl:width=8", "dino:width=8,local_crops=3", "simclr:width=8,negatives=3",
        "deepcluster:width=8,prototypes=4,iterations=1", "ibot:width=8,local_crops=2"}) {
    const auto objective = make_objective(base, context());
    const std::vector<double> usual = behaviour(specification(*objective));
    EXPECT_EQ(behaviour(base), usual) << "nothing else may make a difference";
    for (const Parameter& parameter : objective->parameters()) {
      const std::string changed = specification(*objective, another(parameter));
      EXPECT_TRUE(behaviour(changed) != usual) << changed;  // without thousands of numbers
    }
  }
}

ImageStatistics statistics_of(const DinoParameters& p) {
  return std::get<ImageCrops>(p.views).statistics;
}
ImageStatistics statistics_of(const DeepClusterParameters& p) {
  return std::get<ImageCrops>(p.views).statistics;
}

TEST(Factory, WithoutAKindEveryKindsParametersAreKnown) {
  EXPECT_EQ(make_objective_of_any_kind("simclr:views=5", context())->name(), "simclr");
  EXPECT_EQ(make_objective_of_any_kind("simclr:patch_count=9", context())->name(), "simclr");
  EXPECT_TRUE(make_objective_of_any_kind("ibot", context())->wants_tokens());
  EXPECT_ERROR("klr", make_objective_of_any_kind("klr", context()));
}

TEST(Factory, BadSpecificationsNameWhatIsAccepted) {
  const auto hint = [](const std::string& text) {
    return test::error_of([&] { make_objective(text, context()); });
  };
  EXPECT_NE(hint("klr").find("kl, dino, simclr, deepcluster, ibot"), std::string::npos);
  EXPECT_NE(hint("kl:tau=1").find("temperature, width, normalise, head, direction"), std::string::npos);
  EXPECT_NE(hint("kl:direction=up").find("uniform_first, model_first"), std::string::npos);
  for (const char* bad :
       {"", "kl:temperature", "kl:temperature=", "kl:=3", "kl:temperature=0", "kl:temperature=nan",
        "kl:temperature=1x", "kl:width=1", "kl:width=2.5", "kl:width=1,width=2", "kl:squash=1",
        "ibot:mask_ratio=1.5", "simclr:patch_count=5", "simclr:patch_count=1", "dino:width=1e12",
        "dino:global_crops=1,local_crops=0,skip_same_view=true"})
    EXPECT_NE(hint(bad), "") << bad;
  for (const char* item : {"temperature", "temperature=", "=3"})
    EXPECT_ERROR(fmt::format("expected name=value, found '{}'", item),
                 make_objective(fmt::format("kl:{}", item), context()));
  ObjectiveContext nothing;
  EXPECT_THROW(make_objective("kl", nothing), Error);
}

TEST(Factory, CountsMayBeAsSmallAsTheyMakeSense) {
  for (const auto& [name, lowest] : {std::pair("kl:width", 2),
                                     {"dino:width", 2},
                                     {"ibot:width", 2},
                                     {"simclr:width", 2},
                                     {"deepcluster:width", 2},
                                     {"deepcluster:prototypes", 1},
                                     {"deepcluster:prototype_sets", 1},
                                     {"deepcluster:iterations", 0},
                                     {"deepcluster:assignment_crops", 1},
                                     {"simclr:negatives", 1},
                                     {"simclr:stride_scale", 1},
                                     {"dino:global_crops", 1},
                                     {"dino:local_crops", 0}}) {
    EXPECT_NO_THROW(make_objective(fmt::format("{}={}", name, lowest), context())) << name;
    EXPECT_ERROR(fmt::format("must be a whole number from {} to", lowest),
                 make_objective(fmt::format("{}={}", name, lowest - 1), context()));
  }
}

TEST(Factory, NumbersThatWouldFillTheMemoryAreRefusedFirst) {
  for (const char* text : {"kl:width=1000000000", "kl:width=1000001", "dino_b:width=4e8"})
    EXPECT_ERROR("width must be a whole number from 2 to 1000000, found",
                 make_objective(text, context()));
  EXPECT_ERROR("from 0 to 1000000, found 1000000000",
               make_objective("dino:local_crops=1000000000", context()));
}

TEST(Factory, UnknownStateIsAnError) {
  for (const std::string& name : objective_names(SampleKind::image)) {
    std::vector<NamedMatrix> state;
    state.push_back({"nonsense", Matrix<float>(1, 1)});
    EXPECT_THROW(make_objective(name, context())->restore(state), Error) << name;
  }
}

TEST(Factory, StateIsNamedAsItMustBeGiven) {
  std::vector<NamedMatrix> state;
  state.push_back({"head-weigth", Matrix<float>(1, 1)});
  for (const std::string name : {"kl", "kl_b"}) {
    const std::string said =
        test::error_of([&] { make_objective(name, context())->restore(state); });
    EXPECT_NE(said.find("'" + name + "-head-weigth'"), std::string::npos) << said;
    EXPECT_NE(said.find(name + "-head-weight, " + name + "-head-bias"), std::string::npos) << said;
  }
}

TEST(Factory, AStatedWidthIsThatOfTheHeadsGiven) {
  for (const std::string& name : objective_names(SampleKind::image)) {
    const std::vector<NamedMatrix> heads = make_objective(name + ":width=8", context())->state();
    const auto usual = make_objective(name, context());
    usual->restore(heads);
    EXPECT_EQ(number(*usual, "width"), 8) << name;
    EXPECT_NO_THROW(make_objective(name + ":width=8", context())->restore(heads)) << name;
    SCOPED_TRACE(name);
    EXPECT_ERROR("width=10 is stated",
                 make_objective(name + ":width=10", context())->restore(heads));
  }
  std::vector<NamedMatrix> patches = make_objective("ibot:width=8", context())->state();
  std::erase_if(patches, [](const NamedMatrix& m) { return !m.name.starts_with("patch_"); });
  EXPECT_NO_THROW(make_objective("ibot:width=10", context())->restore(patches))
      << "as stores may have";
}

TEST(Support, IsASeededChoiceWithoutRepeats) {
  const std::vector<uint32_t> some = choose_support(100, 10, 42);
  EXPECT_EQ(some.size(), 10u);
  EXPECT_EQ(some, choose_support(100, 10, 42));
  EXPECT_NE(some, choose_support(100, 10, 43));
  std::vector<uint32_t> all = choose_support(10, Support::kAll, 1);
  std::sort(all.begin(), all.end());
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(all[i], i);
}

// Half the squared norm of one view: as small as an objective can be.
class HalfSquare final : public Objective {
 public:
  std::string name() const override { return "half_square"; }
  std::vector<ViewRequest> views() const override { return {ViewRequest{}}; }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    double loss = 0;
    for (size_t j = 0; j < latents.pooled.cols; ++j) {
      gradients.pooled(0, j) = latents.pooled(0, j);
      loss += 0.5 * latents.pooled(0, j) * latents.pooled(0, j);
    }
    return loss;
  }
};

TEST(Objective, ASubclassNeedsThreeFunctions) {
  HalfSquare objective;
  Matrix<float> e(1, 2), g(1, 2), kept(1, 2);
  e(0, 0) = 3, e(0, 1) = 4;
  EXPECT_EQ(objective.loss_and_gradient({e}, {g, {}}), 12.5);
  EXPECT_EQ(g(0, 1), 4);
  EXPECT_TRUE(objective.ready());
  EXPECT_EQ(specification(objective), "half_square");
  objective.reduce_support(e, kept);
  EXPECT_EQ(kept(0, 1), 4);
  objective.restore({});
  EXPECT_THROW(objective.restore(make_objective("kl", context())->state()), Error);
}

TEST(Objective, ZeroEmbeddingsGiveFiniteNumbers) {
  Pool pool(1);
  for (const std::string& name : objective_names(SampleKind::image)) {
    const auto objective = make_objective(name + ":width=8", context());
    const size_t crops = name == "kl"       ? 1
                         : name == "simclr" ? 49
                         : name == "dino"   ? 12
                         : name == "ibot"   ? 14
                                            : 10;
    if (objective->support().samples > 0) {
      Matrix<float> kept(4, objective->support_width(16));
      objective->reduce_support(Matrix<float>(4, 16), kept);
      objective->prepare(kept, 2, pool);
    }
    Matrix<float> e(crops, 16), g(crops, 16), tokens(crops * 3, 12), d_tokens(crops * 3, 12);
    const std::vector<uint8_t> masked(crops * 3, 1);
    std::vector<size_t> offsets;
    for (size_t v = 0; v <= crops; ++v) offsets.push_back(v * 3);
    EXPECT_TRUE(
        std::isfinite(objective->loss_and_gradient({e, tokens, masked, offsets}, {g, d_tokens})))
        << name;
    for (size_t i = 0; i < crops * 16; ++i) ASSERT_TRUE(std::isfinite(g.data()[i])) << name;
    for (size_t i = 0; i < crops * 36; ++i) ASSERT_EQ(d_tokens.data()[i], 0) << name;
  }
}

TEST(Objective, ThreadsShareOneObjective) {
  const auto dino = make_objective("dino:width=64", context());
  const Matrix<float> e = reference::matrix_of<float>(reference::random_rows(12, 16, 1));
  std::vector<Matrix<float>> g;
  for (int i = 0; i < 4; ++i) g.emplace_back(12, 16);
  std::vector<std::thread> threads;
  for (auto& out : g) threads.emplace_back([&] { dino->loss_and_gradient({e}, {out, {}}); });
  for (auto& thread : threads) thread.join();
  for (const auto& out : g)
    EXPECT_EQ(std::memcmp(out.data(), g[0].data(), 12 * 16 * sizeof(float)), 0);
}

// Before memory is taken: the message is no consolation once the machine swaps.
TEST(Factory, WidthsThatWouldFillTheMemoryAreRefused) {
  ObjectiveContext large = context();
  large.embedding_width = cpu().memory_bytes / 1000000;
  for (const char* kind : {"kl", "dino", "simclr", "deepcluster", "ibot"}) {
    const std::string text = kind + std::string(":width=1000000");
    const std::string said = test::error_of([&] { make_objective(text, large); });
    EXPECT_NE(said.find("width=1000000 would take about"), std::string::npos) << said;
    EXPECT_TRUE(said.starts_with(kind)) << said;
  }
}

}  // namespace
}  // namespace fungi
