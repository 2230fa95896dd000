// SPDX-License-Identifier: Apache-2.0
// The command line as a user meets it: machine-readable answers, helpful refusals, exit codes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "fungi/checkpoint/npy.h"
#include "fungi/input/image.h"
#include "fungi/objective/factory.h"
#include "fungi/store/export.h"
#include "tests/support/command.h"
#include "tests/support/idx.h"

namespace fungi {
namespace {

using test::Outcome;
using test::run_fungi;

const std::string kModel = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors --set heads=4";

TEST(CommandLine, HelpAndVersion) {
  EXPECT_EQ(run_fungi("--help").status, 0);
  EXPECT_NE(run_fungi("--help").out.find("extract"), std::string::npos);
  EXPECT_EQ(run_fungi("--version").status, 0);
}

TEST(CommandLine, WrongWordsAreRefusedWithASuggestion) {
  const Outcome verb = run_fungi("extrakt");
  EXPECT_EQ(verb.status, 2);
  EXPECT_NE(verb.err.find("extract"), std::string::npos) << verb.err;
  const Outcome option = run_fungi("info --jsn");
  EXPECT_EQ(option.status, 2);
  EXPECT_NE(option.err.find("--json"), std::string::npos) << option.err;
  EXPECT_EQ(run_fungi("").status, 2);
  const Outcome early = run_fungi("--json info");
  EXPECT_EQ(early.status, 2);
  EXPECT_NE(early.err.find("put it after 'info'"), std::string::npos) << early.err;
  const Outcome help = run_fungi("help");
  EXPECT_EQ(help.status, 2);
  EXPECT_NE(help.err.find("there is no verb 'help'"), std::string::npos) << help.err;
  for (const char* words : {"extract pictures --modle file 3", "extract pictures --modle=file",
                            "--modle file extract pictures -o store"}) {
    const Outcome misspelt = run_fungi(words);
    EXPECT_EQ(misspelt.status, 2);
    EXPECT_NE(misspelt.err.find("no option '--modle'. Did you mean '--model'?"), std::string::npos)
        << misspelt.err;
  }
  const Outcome dash = run_fungi("kmeans store -k 3");
  EXPECT_EQ(dash.status, 2);
  EXPECT_NE(dash.err.find("no option '-k'"), std::string::npos) << dash.err;
  EXPECT_EQ(dash.err.find("Did you mean"), std::string::npos) << dash.err;
  for (const char* words : {"extract pictures -o store", "extract -o store -- pictures"}) {
    const Outcome missing = run_fungi(words);
    EXPECT_EQ(missing.status, 2);
    EXPECT_NE(missing.err.find("--model is required"), std::string::npos) << missing.err;
  }
}

TEST(CommandLine, InfoSaysWhatIsChosen) {
  const auto info = nlohmann::json::parse(run_fungi("info --json").out);
  EXPECT_EQ(info["image_formats"], nlohmann::json(image_formats()));
  EXPECT_EQ(info["hdf5"], have_hdf5());
  for (const char* key : {"cpu", "physical_cores", "isa", "precision", "kernel", "supported"})
    EXPECT_TRUE(info.contains(key)) << key;
  const auto forced = nlohmann::json::parse(run_fungi("info --json", "FUNGI_ISA=generic").out);
  EXPECT_EQ(forced["isa"], "generic");
  const Outcome unknown = run_fungi("info", "FUNGI_ISA=mmx");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("avx512"), std::string::npos) << unknown.err;
}

TEST(CommandLine, ModelsAndInspect) {
  EXPECT_GE(nlohmann::json::parse(run_fungi("models --json").out).size(), 10u);
  const auto facts = nlohmann::json::parse(run_fungi("inspect --json " + kModel).out);
  EXPECT_EQ(facts["format"], "safetensors");
  EXPECT_EQ(facts["architecture"]["width"], "32");
  EXPECT_EQ(facts["architecture"]["heads"], "4");
  const Outcome ambiguous =
      run_fungi("inspect " FUNGI_GOLDEN_DIR "/backbone/openai_clip/model.pt --set heads=2");
  EXPECT_EQ(ambiguous.status, 1);
  EXPECT_NE(ambiguous.err.find("quick_gelu"), std::string::npos)
      << "must name the choices: " << ambiguous.err;
  const Outcome missing = run_fungi("inspect no/such/file.safetensors");
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("no/such/file.safetensors"), std::string::npos);
}

// The table in docs/cli.md against the program: "| `kl` | `temperature` | 15; lib 1 | ... |".
TEST(CommandLine, TheDocumentListsEveryParameterOfEveryObjective) {
  const auto text = [](const Parameter& p) {
    return std::visit([](const auto& v) { return fmt::format("{}", v); }, p.value);
  };
  std::vector<std::string> expected, found;
  const auto expect = [&](const std::string& name, SampleKind kind) {
    const auto native = default_parameters(name, Preset::native, kind);
    for (size_t i = 0; i < native.size(); ++i) {
      std::string values = text(native[i]);
      for (const Preset preset : {Preset::paper, Preset::lib, Preset::fast})
        if (const std::string other = text(default_parameters(name, preset, kind)[i]);
            other != text(native[i]))
          values += fmt::format("; {} {}", to_string(preset), other);
      expected.push_back(fmt::format("| `{}` | `{}` | {} | ", name, native[i].name, values));
    }
  };
  for (const std::string& name : objective_names(SampleKind::image))
    expect(name, SampleKind::image);
  for (const char* name : {"dino", "simclr", "deepcluster", "mlm"}) expect(name, SampleKind::text);
  for (const char* name : {"dino", "simclr", "deepcluster"}) expect(name, SampleKind::sound);
  std::ifstream document(FUNGI_GOLDEN_DIR "/../../docs/cli.md");
  for (std::string line; std::getline(document, line);)
    for (const std::string& name : objective_names())
      if (line.starts_with("| `" + name + "` | "))
        found.push_back(line.substr(0, line.rfind("| ", line.size() - 3) + 2));
  EXPECT_EQ(found, expected);
}

TEST(CommandLine, UsageHasTheWordsInTheirOrder) {
  for (const auto& [verb, usage] : {std::pair<std::string, std::string>{"", "fungi VERB [OPTIONS]"},
                                    {"extract", "fungi extract DATA -m MODEL -o STORE [OPTIONS]"},
                                    {"project", "fungi project STORE -o STORE [OPTIONS]"},
                                    {"knn", "fungi knn TRAIN TEST [OPTIONS]"},
                                    {"pca", "fungi pca STORES... -o FOLDER [OPTIONS]"},
                                    {"reproduce", "fungi reproduce [TABLE] [OPTIONS]"}})
    EXPECT_NE(run_fungi(verb + " --help").out.find("Usage: " + usage + "\n"), std::string::npos)
        << run_fungi(verb + " --help").out;
  const test::TemporaryFolder folder;
  const Outcome late =
      run_fungi("extract -m w --objectives kl " + folder.path().string() + " -o s");
  EXPECT_EQ(late.status, 2);
  EXPECT_NE(late.err.find("put the data set before the options"), std::string::npos) << late.err;
}

TEST(CommandLine, HelpShowsParametersAndNames) {
  for (const char* verb : {"extract", "bench"}) {
    const std::string help = run_fungi(std::string(verb) + " --help").out;
    for (const std::string& name : objective_names(SampleKind::image))
      for (const Parameter& p : default_parameters(name, Preset::native))
        EXPECT_NE(help.find(" " + p.name + "="), std::string::npos) << verb << " " << p.name;
    EXPECT_NE(help.find("temperature=15 (lib 1), width=768"), std::string::npos) << help;
    const std::string document = test::read_file(FUNGI_SOURCE_DIR "/docs/cli.md");
    for (const char* layer :
         {"blocks.N.attn.qkv", "blocks.N.attn.proj", "blocks.N.mlp.fc1", "blocks.N.mlp.fc2"})
      for (const std::string& text : {help, document})
        EXPECT_NE(text.find(layer), std::string::npos) << layer << text;
  }
  for (const char* name : {"vit_base_patch16_224", "dino_vits8", "dinov2_vitl14"})
    EXPECT_NE(run_fungi("bench --help").out.find(name), std::string::npos) << name;
}

TEST(CommandLine, ObjectivesMayStandInOneWord) {
  const auto plan = [](const std::string& objectives) {
    const test::TemporaryFolder folder;
    return run_fungi(
        fmt::format("extract {0}/demo/images/test -m {0}/demo/model.safetensors --dry-run -o {1} "
                    "--objectives {2}",
                    FUNGI_SOURCE_DIR, (folder / "s").string(), objectives));
  };
  const Outcome words = plan("kl simclr:negatives=64,width=96 dino");
  ASSERT_EQ(words.status, 0) << words.err;
  EXPECT_NE(words.out.find("embedding+kl+simclr+dino"), std::string::npos) << words.out;
  EXPECT_EQ(plan("kl,simclr:negatives=64,width=96,dino").out, words.out);
  EXPECT_EQ(plan("kl,simclr:negatives=64,width=96 dino").out, words.out);
  for (const char* odd :
       {"kl,,dino", "kl,dino,", "kl,klein", "kl,negatives=64", "kl,none", "kl,kl"}) {
    const Outcome refused = plan(odd);
    EXPECT_EQ(refused.status, 2) << odd;
    EXPECT_NE(refused.err.find("--objectives"), std::string::npos) << refused.err;
  }
  EXPECT_NE(plan("kl,klein").err.find("kl, dino, simclr, deepcluster, ibot"), std::string::npos);
}

TEST(CommandLine, BenchPrintsOneObject) {
  for (const char* objectives :
       {"none", "kl", "kl,dino:global_crops=1,local_crops=1,simclr:stride_scale=1,negatives=2",
        "kl dino:global_crops=1,local_crops=1 simclr:stride_scale=1,negatives=2",
        "ibot:width=16,local_crops=1"}) {
    const Outcome o =
        run_fungi(std::string("bench -m vit_tiny_patch16_224 --seconds 0.1 --json --objectives ") +
                  objectives);
    ASSERT_EQ(o.status, 0) << o.err;
    const auto json = nlohmann::json::parse(o.out);
    for (const char* key : {"samples_per_second", "peak_gflops", "share_of_peak", "peak_rss_mb",
                            "isa", "precision", "threads"})
      EXPECT_TRUE(json.contains(key)) << key;
    EXPECT_GT(json["samples_per_second"], 0);
    EXPECT_GT(json["share_of_peak"], 0);
  }
  EXPECT_EQ(run_fungi("bench -m vit_enormous").status, 1);
  EXPECT_EQ(run_fungi("bench -m vit_tiny_patch16_224 --objectives klein").status, 2);
  for (const char* command : {"bench -m vit_tiny_patch16_224 --objectives none kl",
                              "extract data -m model -o store --objectives kl none"}) {
    const Outcome both = run_fungi(command);
    EXPECT_EQ(both.status, 2) << command;
    EXPECT_NE(both.err.find("give it alone"), std::string::npos) << both.err;
  }
  for (const char* k : {"0", "-1", "many", "1.5", "00", "' -1'", "''", "0x10"}) {
    const Outcome wrong = run_fungi(std::string("knn a b -k ") + k);
    EXPECT_EQ(wrong.status, 2) << k;
    EXPECT_NE(wrong.err.find("at least 1"), std::string::npos) << wrong.err;
  }
}

TEST(CommandLine, BenchOfPresetsSideBySide) {
  const std::string bench = "bench -m vit_tiny_patch16_224 --seconds 0.1 --presets paper fast ";
  const std::string some = "--objectives kl dino:global_crops=1,local_crops=1 ";
  const Outcome o = run_fungi(bench + some + "--json");
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out);
  ASSERT_EQ(json["presets"].size(), 2u);
  const auto &paper = json["presets"][0], &fast = json["presets"][1];
  EXPECT_EQ(paper["ratio"], 1);
  EXPECT_NE(paper["precision"], "int8");
  EXPECT_EQ(fast["precision"], "int8");
  EXPECT_EQ(paper["views_per_sample"], 3);
  EXPECT_LT(fast["gflop_per_sample"], paper["gflop_per_sample"]) << "its local crop is smaller";
  EXPECT_GT(fast["samples_per_second"], 0);
  const Outcome text = run_fungi(bench + some);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("\nfast      int8"), std::string::npos) << text.out;
  EXPECT_EQ(run_fungi(bench + "--objectives none").status, 2);
  EXPECT_EQ(run_fungi(bench + "--batch 2").status, 2);
  EXPECT_EQ(run_fungi("bench -m vit_tiny_patch16_224 --presets quick").status, 2);
}

// The packed weights of a ViT-B are 172 MB in bf16; docs/performance.md says what a run adds.
TEST(CommandLine, ARunHoldsItsWeightsOnceAndNoMore) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own; use another build";
#endif
  const Outcome o = run_fungi(
      "bench -m vit_base_patch16_224 --precision bf16 --objectives none --seconds 0.1 --batch 1 -j "
      "2 --json");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_LT(nlohmann::json::parse(o.out)["peak_rss_mb"], 350);
}

TEST(CommandLine, HeadsOfAFileMustFitWhatIsSaid) {
  const test::TemporaryFolder folder;
  test::write_idx(folder / "data", 2);
  const auto extract = [&](const char* weight, const std::string& objective) {
    write_npz(folder / "heads.npz", {{weight, npy_array(Matrix<float>(10, 32))},
                                     {"kl-head-bias", npy_array(Matrix<float>(1, 10))}});
    return run_fungi(fmt::format("extract {} -m {} --dry-run --objectives {} --given {} -o {}",
                                 (folder / "data").string(), kModel, objective,
                                 (folder / "heads.npz").string(), (folder / "store").string()));
  };
  EXPECT_EQ(extract("kl-head-weight", "kl").status, 0);
  EXPECT_EQ(extract("kl-head-weight", "kl:width=10").status, 0);
  const Outcome other = extract("kl-head-weight", "kl:width=8"),
                misspelt = extract("kl-head-weigth", "kl");
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("width=8 is stated, but the head given has 10 rows"), std::string::npos)
      << other.err;
  EXPECT_EQ(misspelt.status, 1);
  EXPECT_NE(misspelt.err.find("kl-head-weight, kl-head-bias"), std::string::npos) << misspelt.err;
}

TEST(CommandLine, WordsThatMeanNothingAreRefused) {
  const std::pair<const char*, const char*> lines[] = {
      {"knn a b -k 99999999999999999999999", "at most 18446744073709551615"},
      {"knn a b --memory -1", "a size such as 8GB"},
      {"knn a b --memory ''", "a size such as 8GB"},
      {"knn a b --features ''", "--features"},
      {"knn a b --memory 0x10", "a size such as 8GB"},
      {"knn a b --memory 0.5GB", "a size such as 8GB"},
      {"knn a b --memory 99999999999999999999", "a size such as 8GB"},
      {"knn a b --exact-gradients --memory 1GB", "--memory"},
      {"retrieve a b --truth ''", "--truth"},
      {"info ''", "found nothing"},
      {"linear a b --lambda nan", "positive number"},
      {"bench -m vit_tiny_patch16_224 --seconds nan", "finite"},
      {"bench -m vit_tiny_patch16_224 --objectives none --layer blocks.0.mlp.fc1", "--layer"},
      {"report a b --queries 5", "--train-pictures"},
      {"reproduce --data .", "table"},
      {"index s -o i --kind exact --seed 5", "--seed"},
      {"index s -o i --kind hnsw --links 1", "--links"},
      {"linear a b --lambda inf", "finite"},
      {"linear a b --lambda x", "expected a positive number, found x"},
      {"linear a b --lambda -1", "expected a positive number, found -1"},
      {"linear a b --lambda 0", "expected a positive number, found 0"},
      {"knn a b --vote distance --metric cosine", "--metric euclidean"},
      {"inspect m --set heads", "expected key=value, found heads"},
      {"extract d -m m -o s --set heads", "expected key=value, found heads"},
      {"extract d -m m -o s --layer none", "--objectives none"},
      {"extract d -m m -o s --projection none --projection-dim 5", "--projection-dim"},
      {"reproduce knn --use vit", "expected BACKBONE=FILE, found vit"},
      {"reproduce --seed 3", "table"},
      {"reproduce knm", "there is no table 'knm': choose all, or one of knn, "},
      {"inspect m --set head=3", "'head' is not a fact that can be stated: choose one of"},
      {"extract d -m m -o s --layer blocks.0.mlp", "expected blocks.N.attn.qkv"},
      {"bench -m vit_tiny_patch16_224 --layer blocks.x.mlp.fc1", "found blocks.x.mlp.fc1"}};
  for (const auto& [line, said] : lines) {
    const Outcome o = run_fungi(line);
    EXPECT_EQ(o.status, 2) << line << ": " << o.err;
    EXPECT_NE(o.err.find(said), std::string::npos) << line << ": " << o.err;
  }
  EXPECT_EQ(run_fungi("extract d -m m -o s --layer blocks.-2.mlp.fc2").status, 1) << "no such file";
}

TEST(CommandLine, WhoStopsReadingIsNotComplainedTo) {
  const test::TemporaryFolder folder;
  const std::string left = (folder / "left").string(), status = (folder / "status").string(),
                    err = (folder / "err").string();
  // `true` reads nothing; the pipe is closed once `left` is there.
  const auto pipe = [&](const std::string& command, const std::string& streams) {
    std::filesystem::remove(left);
    const std::string line = "{ while [ ! -e '" + left + "' ]; do sleep 0.01; done; sleep 0.1; '" +
                             FUNGI_BINARY "' " + command + streams + "; echo $? >'" + status +
                             "'; } | { exec <&-; touch '" + left + "'; }";
    EXPECT_EQ(std::system(line.c_str()), 0);
    return std::stoi(test::read_file(status));
  };
  EXPECT_EQ(pipe("models", " 2>'" + err + "'"), 128 + SIGPIPE);
  EXPECT_EQ(test::read_file(err), "");
  // Notes that nobody reads do not end the work.
  const std::string store = (folder / "store").string();
  EXPECT_EQ(pipe("extract '" FUNGI_SOURCE_DIR "/demo/images/test' -m '" FUNGI_SOURCE_DIR
                 "/demo' --objectives none --limit 3 -o '" +
                     store + "'",
                 " 2>&1 >'" + (folder / "out").string() + "'"),
            0);
  EXPECT_EQ(run_fungi("info '" + store + "'").status, 0);
}

}  // namespace
}  // namespace fungi
