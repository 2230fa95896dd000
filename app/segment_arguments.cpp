// SPDX-License-Identifier: Apache-2.0
#include "app/segment_arguments.h"

#include <charconv>

namespace fungi::app {
namespace {

// "512" or "384x640": height, width.
bool parse_size(const std::string& text, size_t& height, size_t& width) {
  const size_t cross = text.find('x');
  const auto number = [](std::string_view digits, size_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0 &&
           value <= 16384;
  };
  const std::string_view whole(text);
  if (cross == std::string::npos) return number(whole, height) && number(whole, width);
  return number(whole.substr(0, cross), height) && number(whole.substr(cross + 1), width);
}

CLI::Validator input_size() {
  const auto check = [](const std::string& text) -> std::string {
    size_t height = 0, width = 0;
    return parse_size(text, height, width)
               ? ""
               : "expected a side such as 512, or height x width such as 384x640, found " + text;
  };
  return CLI::Validator(check, "");
}

CLI::Validator one_objective() {
  const auto check = [](const std::string& text) -> std::string {
    const std::string name = text.substr(0, text.find(':'));
    if (name == "patch_simclr" || name == "kl" || name == "dino" || text == "none") return "";
    return "expected patch_simclr, kl, dino or none, found " + text;
  };
  return CLI::Validator(check, "");
}

}  // namespace

void SegmentArguments::add_to(CLI::App& verb) {
  verb.add_option("data", data,
                  "TRAIN and TEST: pictures with masks (images/ beside masks/, Pascal VOC, ADE20K, "
                  "CamVid, a .csv of pairs); with --bank pictures to segment")
      ->required();
  model.add_to(verb, "Checkpoint of a vision transformer; with --bank only if it was moved");
  verb.add_option("-o,--output", out,
                  "A folder: memory, predictions, scores and page; with --bank the mask, or a "
                  "folder for those of several pictures")
      ->required();
  verb.add_option("--bank", bank, "The memory of an earlier run (OUT/bank): segment pictures");
  verb.add_option("--size", size, "Input of the model: a side, or height x width (384x640)")
      ->capture_default_str()
      ->check(input_size());
  verb.add_option("--objectives", objective,
                  "patch_simclr with parameters (patch_simclr:heads=4), kl, dino, or none")
      ->capture_default_str()
      ->check(one_objective());
  verb.add_option("--preset", preset, "native: what is right; paper: what the reference does")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "paper"}));
  verb.add_option("--projection", projection, "factored, sign, sign_reference, gaussian or sparse")
      ->capture_default_str()
      ->check(CLI::IsMember({"factored", "sign", "sign_reference", "gaussian", "sparse"}));
  verb.add_option("--projection-dim", projection_rows,
                  "Rows of the projection; 0 = the width of a token")
      ->capture_default_str();
  auto* one_seed = verb.add_option("--seed", seed, "Seed of heads, projection, crops and sampling")
                       ->capture_default_str();
  seeds.add_to(verb)->excludes(one_seed);
  verb.add_option("--memory", memory,
                  "Patches remembered of all pictures together, rare classes first; 0 = all")
      ->default_str("102400");
  verb.add_option("--epochs", epochs, "How often each training picture is remembered, drawn anew")
      ->default_str("1")
      ->type_name(kCount);
  verb.add_option("--images", images, "Only so many training pictures, drawn at random; 0 = all")
      ->capture_default_str();
  verb.add_flag("--few-shot", few_shot,
                "The paper's settings for few pictures: -k 90 --temperature 0.1 --epochs 8 "
                "--memory 0 --probes 256 --rerank 1800");
  verb.add_option("-k", k, "Neighbours of a patch that label it")
      ->default_str("30")
      ->type_name(kCount);
  verb.add_option("--temperature", temperature, "Smaller: the nearest neighbours count more")
      ->default_str("0.02")
      ->check(positive_number());
  verb.add_option("--search", search,
                  "exact, ivf (lists of 8-bit codes), or auto: exact up to 131072 rows")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "exact", "ivf"}));
  verb.add_option("--lists", lists, "ivf: lists")->default_str("512")->type_name(kCount);
  verb.add_option("--probes", probes, "ivf: lists searched")->default_str("32")->type_name(kCount);
  verb.add_option("--rerank", rerank, "ivf: rows compared exactly")
      ->default_str("120")
      ->type_name(kCount);
  verb.add_option("--layout", layout, "auto, folders, voc, ade20k, camvid or list")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "folders", "voc", "ade20k", "camvid", "list"}));
  verb.add_option("--split", train_split, "Split of TRAIN: a list of VOC, a folder elsewhere");
  verb.add_option("--test-split", test_split, "Split of TEST");
  verb.add_option("--class-names", class_names, "A file with the name of a class in each line");
  verb.add_option("--ignore", ignore, "Value of pixels that count nowhere; -1 = none")
      ->capture_default_str()
      ->check(CLI::Range(-1, 255));
  verb.add_flag("--at-picture-size", at_picture_size,
                "Compare pixels at the size of the picture instead of the model's input");
  verb.add_flag("--no-masks", no_masks, "Write no predictions");
  verb.add_flag("--no-page", no_page, "Write no index.html");
  verb.add_option("--shown", shown, "Pictures on the page: so many that gain most, and that lose")
      ->capture_default_str();
  verb.add_option("--kind", kind, "With --bank: embedding or fungi; default: the best there is")
      ->check(CLI::IsMember({"embedding", "fungi"}));
  verb.add_option("--colours", colours,
                  "With --bank: also a picture of the features, three principal components as "
                  "colours; a file, or a folder");
  verb.add_flag("-q,--quiet", quiet, "No progress, no notes");
  verb.add_flag("--json", json, "Print JSON");
  verb.final_callback([this, &verb] { settle(verb); });
}

void SegmentArguments::settle(const CLI::App& verb) {
  const auto given = [&](const char* option) { return verb.get_option(option)->count() > 0; };
  if (bank.empty()) {
    if (data.size() != 2)
      throw CLI::ValidationError("TRAIN TEST",
                                 fmt::format("expected two data sets, found {}", data.size()));
    if (model.model.empty()) throw CLI::RequiredError("--model");
    for (const char* option : {"--kind", "--colours"})
      if (given(option))
        throw CLI::ValidationError(option, "is for pictures: it needs --bank, OUT/bank of a run");
  } else {
    for (const char* option :
         {"--size",   "--objectives",      "--preset",   "--projection", "--projection-dim",
          "--seed",   "--seeds",           "--memory",   "--epochs",     "--images",
          "-k",       "--few-shot",        "--search",   "--lists",      "--probes",
          "--rerank", "--temperature",     "--layout",   "--split",      "--test-split",
          "--ignore", "--at-picture-size", "--no-masks", "--no-page",    "--class-names",
          "--layer",  "--precision",       "--set",      "--shown"})
      if (given(option))
        throw CLI::ValidationError(option, "was decided when the memory was made: leave it out");
  }
  if (given("--seeds") && !names_seed(out))
    throw CLI::ValidationError("--output", "each seed writes a memory of its own: write " +
                                               std::string(kSeedPlace) + " in the folder's name");
  if (given("--ignore")) stated_ignore = ignore;
  options_ = few_shot ? SegmentOptions::few_shot() : SegmentOptions();
  if (given("--memory")) options_.memory = memory;
  if (given("--epochs")) options_.epochs = epochs;
  if (given("-k")) options_.k = k;
  if (given("--temperature")) options_.temperature = temperature;
  if (given("--lists")) options_.search.lists = lists;
  if (given("--probes")) options_.search.probes = probes;
  if (given("--rerank")) options_.search.rerank = rerank;
  options_.images = images;
  options_.search.search = parse_bank_search(search);
}

PatchFeatureOptions SegmentArguments::features() const {
  PatchFeatureOptions o;
  parse_size(size, o.height, o.width);
  o.objective = objective == "none" ? "" : objective;
  o.preset = parse_preset(preset);
  o.projection = parse_projection(projection);
  o.projection_rows = projection_rows;
  o.seed = seed;
  return o;
}

SegmentOptions SegmentArguments::options() const { return options_; }

}  // namespace fungi::app
