// SPDX-License-Identifier: Apache-2.0
#include "app/extract_arguments.h"

#include "fungi/hub/pull.h"

namespace fungi::app {
namespace {

// Forty options are too many for one list; --help shows them in these.
void group_options(CLI::App& verb) {
  const auto group = [&](const char* name, std::initializer_list<const char*> options) {
    for (const char* option : options) verb.get_option(option)->group(name);
  };
  group("Model", {"--model", "--set", "--precision", "--layer", "--layers"});
  group("Gradients", {"--objectives", "--preset", "--projection", "--projection-dim", "--given",
                      "--seed", "--weight", "--keep-factors"});
  group("Data", {"--kind", "--split", "--fold", "--classes", "--limit", "--exif",
                 "--allow-truncated"});
  group("Texts", {"--text-column", "--label-column", "--id-column", "--prefix", "--max-tokens"});
  group("Sounds", {"--window", "--hop", "--statistics"});
  group("Store", {"--output", "--like", "--storage", "--shard", "--overwrite", "--prune", "--strict",
                  "--retry-failed"});
  group("Threads and processes", {"--threads", "--part", "--gather", "--allow-mixed"});
}

}  // namespace

void ExtractArguments::add_to(CLI::App& verb) {
  verb.add_option("data", data,
                  "Folder of classes, flat folder, list (.csv .tsv .jsonl), tar shards, CIFAR or "
                  "IDX files, of pictures or sounds as the model wants them; "
                  "of texts also lines (.txt, or - for standard input)")
      ->required();
  CLI::Option* model_option = model.add_to(verb,
                                           "Checkpoint file or folder (safetensors, .pth, .bin, "
                                           ".npz), or hf:ORG/NAME of a model that was "
                                           "pulled; not needed with --like");
  model.add_layers(verb);
  model_option->required();
  verb.add_option("-o,--output", store, "The store: a folder, made if needed")
      ->required()
      ->type_name("STORE");
  verb.add_option(
          "--objectives", objectives,
          "kl, dino, simclr, deepcluster, ibot, mlm with parameters (simclr:negatives=64), or none")
      ->capture_default_str()
      ->check(objective_word());
  verb.add_option("--preset", preset,
                  "native: what is right; paper, lib: what the references do; fast: fewer and "
                  "smaller views, in int8 unless --precision says otherwise")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "paper", "lib", "fast"}));
  projection.add_to(verb);
  verb.add_option("--given", given,
                  "Heads or a projection of your own: .npz or .safetensors with tensors named as "
                  "in the store's state");
  verb.add_option("--seed", seed, "Seed of heads, projection, crops and support")
      ->capture_default_str();
  verb.add_option("--like", like,
                  "Another store: its heads, negatives and numbers of classes are used, its "
                  "model and settings for every option that is left out; others are refused")
      ->each([model_option](const std::string&) { model_option->required(false); });
  verb.add_option("--kind", kind, "Kind of data set: auto, classes, flat, list, tar, cifar, idx")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "classes", "flat", "list", "tar", "cifar", "idx"}));
  verb.add_option(
      "--split", split,
      "Split of the data set: the official one of a published set, or a folder in it; of CIFAR "
      "and IDX files train or test; of SpeechCommands also validation");
  verb.add_option("--fold", fold,
                  "Of a list: rows whose column 'fold' (or 'split') is this; '!1': all but 1");
  verb.add_option("--classes", classes,
                  "Only samples of these classes: a file with a name in each line, as for "
                  "ImageNet-100");
  columns.add_to(verb);
  verb.add_option("--storage", storage, "float32 or float16")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "float16"}));
  verb.add_option("--shard", shard, "Samples per shard; 0 = chosen by their cost")
      ->capture_default_str();
  auto* limit_option = verb.add_option("--limit", limit, "Only the first so many samples; 0 = all")
                           ->capture_default_str();
  verb.add_option("--part", part,
                  "Only part K of N, such as 3/16, into a store of its own: 'fungi merge' joins them")
      ->type_name("K/N");
  verb.add_option("--weight", weight,
                  "How long gradients are beside the embedding, whose length is 1; default: 1, or "
                  "0.2 beside the mean of a text's tokens");
  verb.add_flag(
      "--keep-factors", factors,
      "Also store the gradients' factors, for other projections and exact gradient neighbours");
  verb.add_flag("--exif", exif, "Turn pictures as their EXIF orientation says");
  verb.add_flag("--allow-truncated", truncated,
                "Use what a cut-off or damaged JPEG, PNG or sound still holds");
  verb.add_option("--prefix", prefix,
                  "Of texts: stands before each, as some models want it (\"query: \")");
  verb.add_option("--max-tokens", max_tokens,
                  "Of texts: cut after so many tokens; 0 = as many as the model reads")
      ->capture_default_str();
  verb.add_option("--window", window,
                  "Of sounds: every file is several samples of so many seconds; 0 = one")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--hop", hop, "Of sounds: seconds between windows; 0 = as long as they are")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  verb.add_option(
          "--statistics", statistics,
          "Of sounds for AST and SSAST: mean and std of the model, measured on the data, or "
          "the paper's (with its number of frames) for esc50 or speechcommands")
      ->capture_default_str()
      ->check(CLI::IsMember({"model", "measure", "esc50", "speechcommands"}));
  verb.add_flag("--strict", strict,
                "End after the shard with the first bad file, which is recorded, too");
  verb.add_flag("--retry-failed", retry, "Try recorded failures again");
  // Together they would drop all rows beyond the limit, which nobody means.
  verb.add_flag("--prune", prune, "Drop rows whose files have gone")->excludes(limit_option);
  verb.add_flag("--overwrite", overwrite, "Throw away what the store holds");
  verb.add_flag("--gather", gather,
                "Under mpirun: rows travel to rank 0, for hosts without a shared file system");
  verb.add_flag("--allow-mixed", mixed,
                "Under mpirun: ranks may have other instruction sets; the store says so");
  verb.add_flag("--dry-run", dry_run, "Check everything, write nothing");
  verb.add_flag("-q,--quiet", quiet, "No progress, no notes");
  verb.add_flag("--json", json, "Print JSON");
  group_options(verb);
  verb.footer(objective_parameters());
  verb.final_callback([this, &verb] { settle(verb); });
}

std::optional<StorePart> ExtractArguments::part_of_data() const {
  return part.empty() ? std::nullopt : std::optional(parse_part(part));
}

void ExtractArguments::settle(const CLI::App& verb) {
  const auto given_here = [&](const char* option) { return verb.get_option(option)->count() > 0; };
  const bool follows = given_here("--like");
  const auto stated = [&](const char* option) { return !follows || given_here(option); };
  if (follows) settings = followed_settings(like);
  ExtractorOptions& e = settings.extractor;
  if (stated("--model")) settings.model = pulled_model(model.model);
  if (follows) require_followed_model(like, settings.model);
  for (const auto& [key, value] : model.facts.read()) settings.backbone.stated_facts[key] = value;
  if (stated("--layer") && !given_here("--layers"))
    settings.backbone.layer = model.layer, settings.backbone.layers.clear();
  if (given_here("--layers")) settings.backbone.layers = model.layers;
  settings.backbone.precision = model.stated_precision();
  if (stated("--objectives")) e.objectives = objective_list(objectives);
  if (stated("--preset")) e.preset = parse_preset(preset);
  if (stated("--seed")) e.seed = seed;
  if (stated("--storage")) settings.type = parse_store_type(storage);
  if (stated("--exif")) e.decode.exif_orientation = exif;
  if (stated("--allow-truncated")) e.decode.allow_truncated = truncated;
  if (stated("--prefix")) e.text.prefix = prefix;
  if (stated("--max-tokens")) e.text.max_tokens = max_tokens;
  if (given_here("--weight")) e.gradient_weight = weight;
  if (stated("--window")) e.sound.window = window;
  if (stated("--keep-factors") || e.objectives.empty()) e.keep_factors = factors;
  if (!stated("--projection")) projection.kind = to_string(e.projection);
  if (!stated("--projection-dim")) projection.rows = e.projection_rows;
  e.projection = parse_projection(projection.kind);
  e.projection_rows = projection.rows;

  if (e.objectives.empty())
    for (const char* option :
         {"--projection", "--projection-dim", "--layer", "--layers", "--keep-factors",
          "--weight"})
      if (given_here(option))
        throw CLI::ValidationError(
            option, "is about gradients, of which --objectives none has none: leave it out");
  if (given_here("--projection") || given_here("--projection-dim"))
    projection.require_consistent(given);
  if (given_here("--keep-factors") && factors && settings.type == StoreType::float16)
    throw CLI::ValidationError("--keep-factors",
                               "small gradients do not survive --storage float16, and nothing "
                               "could use the factors: leave one of the two out");
}

}  // namespace fungi::app
