// SPDX-License-Identifier: Apache-2.0
// fungi extract when things go wrong, as a user meets it: bad pictures of every kind, replaced
// files, a full disk, missing permissions, another model. Each time: a clear outcome, an exit
// status, nothing lost, and the command goes on when repeated.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::run_fungi;

const fs::path kImages = FUNGI_GOLDEN_DIR "/input/images";
const std::string kGolden = FUNGI_GOLDEN_DIR "/backbone/";

std::string command(const fs::path& data, const fs::path& store, const std::string& more = "",
                    const std::string& model = "timm_vit") {
  return "extract " + data.string() + " -m " + kGolden + model +
         "/model.safetensors --set heads=4 --objectives kl:width=8 --shard 4 -j 2 -o " +
         store.string() + " " + more;
}

std::string big_endian(uint32_t v) { return {char(v >> 24), char(v >> 16), char(v >> 8), char(v)}; }

std::string png_chunk(const std::string& type_and_data) {
  uint32_t crc = ~0u;
  for (const char c : type_and_data) {
    crc ^= uint8_t(c);
    for (int k = 0; k < 8; ++k) crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
  }
  return big_endian(uint32_t(type_and_data.size() - 4)) + type_and_data + big_endian(~crc);
}

// An 8-bit grey PNG, all black, of which only so many rows are there.
std::string png(uint32_t width, uint32_t height, size_t rows_there) {
  std::string file =
      "\x89PNG\r\n\x1a\n" +
      png_chunk("IHDR" + big_endian(width) + big_endian(height) + std::string("\x08\0\0\0\0", 5));
  const std::string rows((width + 1) * rows_there,
                         '\0');  // one stored block of deflate holds up to 65535 bytes
  const auto n = uint16_t(rows.size());
  const uint32_t adler = uint32_t(rows.size() % 65521) << 16 | 1;
  file +=
      png_chunk("IDAT\x78\x01\x01" + std::string{char(n), char(n >> 8), char(~n), char(~n >> 8)} +
                rows + big_endian(adler));
  return file + png_chunk("IEND");
}

// A JPEG whose header speaks of another size.
std::string resized_jpeg(uint16_t width, uint16_t height) {
  std::string file = test::read_file(kImages / "grey.jpg");
  const size_t frame = file.find("\xff\xc0");
  file.replace(frame + 5, 4, {char(height >> 8), char(height), char(width >> 8), char(width)});
  return file;
}

// Six good pictures in two classes.
void write_pictures(const fs::path& folder) {
  for (const char* name : {"a/filtered.png", "a/grey.jpg", "a/rgb8.png", "b/grey8.png",
                           "b/exif_1.jpg", "b/lossy.webp"})
    test::write_file(folder / name, test::read_file(kImages / fs::path(name).filename()));
}

// id -> (stage, reason) of failed.jsonl
std::map<std::string, std::pair<std::string, std::string>> failures(const fs::path& store) {
  std::map<std::string, std::pair<std::string, std::string>> found;
  std::ifstream lines(store / "failed.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    found[json["id"]] = {json["stage"], json["reason"]};
  }
  return found;
}

TEST(ExtractTrouble, EveryKindOfBadPictureIsRecordedAndTriedAgainWhenReplaced) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  std::string corrupt = test::read_file(kImages / "ycbcr_420.jpg");
  corrupt.replace(2, corrupt.size() - 2, std::string(corrupt.size() - 2, '\xff'));
  struct Bad {
    std::string bytes, stage, reason;
  };
  const std::map<std::string, Bad> bad = {
      {"a/corrupt.jpg", {corrupt, "decode", "JPEG file"}},
      {"a/cut.jpg", {test::read_file(kImages / "cut.jpg"), "decode", "truncated"}},
      {"a/empty.png", {"", "decode", "0 bytes"}},
      {"a/header.png", {png(1, 1, 0), "decode", "PNG file"}},
      {"b/huge.jpg",
       {resized_jpeg(30000, 30000), "decode", "30000x30000 pixels exceeds the limit"}},
      {"b/huge.png", {png(30000, 30000, 1), "decode", "30000x30000 pixels exceeds the limit"}},
      {"b/nothing.jpg", {resized_jpeg(0, 0), "decode", "JPEG file"}},
      {"b/nothing.png", {png(0, 0, 0), "decode", "PNG file"}},
      {"b/slim.png", {png(1, 5000, 5000), "view", "1x5000 pixels"}}};
  for (const auto& [name, b] : bad) test::write_file(folder / "data" / name, b.bytes);
  const Outcome run = run_fungi(command(folder / "data", folder / "store", "--json"));
  ASSERT_EQ(run.status, 3) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["rows"], 6);
  const auto recorded = failures(folder / "store");
  ASSERT_EQ(recorded.size(), bad.size());
  for (const auto& [name, b] : bad) {
    EXPECT_EQ(recorded.at(name).first, b.stage) << name;
    EXPECT_NE(recorded.at(name).second.find(b.reason), std::string::npos)
        << name << ": " << recorded.at(name).second;
  }
  const Outcome again = run_fungi(command(folder / "data", folder / "store", "--json"));
  EXPECT_EQ(again.status, 3);
  EXPECT_EQ(nlohmann::json::parse(again.out)["computed"], 0);

  for (const auto& [name, b] : bad) test::write_file(folder / "data" / name, png(40, 30, 30));
  const Outcome mended = run_fungi(command(folder / "data", folder / "store", "--json"));
  ASSERT_EQ(mended.status, 0) << mended.err;
  EXPECT_EQ(nlohmann::json::parse(mended.out)["computed"], bad.size());
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "fresh")).status, 0);
  EXPECT_EQ(test::contents(folder / "store"), test::contents(folder / "fresh"));
}

TEST(ExtractTrouble, AReplacedPictureIsComputedAgain) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "store")).status, 0);
  test::write_file(folder / "data/a/grey.jpg", test::read_file(kImages / "ycbcr_420.jpg"));
  const Outcome run = run_fungi(command(folder / "data", folder / "store", "--json"));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["computed"], 1);
  fs::copy(folder / "data", folder / "copy",
           fs::copy_options::recursive);  // other times, same store
  ASSERT_EQ(run_fungi(command(folder / "copy", folder / "fresh")).status, 0);
  EXPECT_EQ(test::contents(folder / "store"), test::contents(folder / "fresh"));
}

TEST(ExtractTrouble, AListWhoseFilesAreAwayKeepsItsRows) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "disk");
  test::write_file(folder / "list.txt", "disk/a/filtered.png\ndisk/a/grey.jpg\ndisk/b/grey8.png\n");
  ASSERT_EQ(run_fungi(command(folder / "list.txt", folder / "store")).status, 0);
  const auto before = test::contents(folder / "store");
  fs::rename(folder / "disk", folder / "unplugged");
  EXPECT_EQ(run_fungi(command(folder / "list.txt", folder / "store")).status, 0);
  EXPECT_EQ(test::contents(folder / "store"), before);
  EXPECT_EQ(run_fungi(command(folder / "list.txt", folder / "other")).status, 1) << "not a row";
  EXPECT_EQ(failures(folder / "other").at("disk/a/grey.jpg").first, "read");
}

void expect_full_disk(const Outcome& full, const fs::path& store, const std::string& reason) {
  EXPECT_EQ(full.status, 1) << full.err;
  EXPECT_NE(full.err.find(reason), std::string::npos) << full.err;
  EXPECT_NE(full.err.find(store.string()), std::string::npos) << "must name the file: " << full.err;
}

TEST(ExtractTrouble, AFullDiskLosesNothing) {
  if (std::system("unshare -rm true 2>/dev/null") != 0)
    GTEST_SKIP() << "a full disk is played on a small tmpfs, and this system lets nobody mount one "
                    "('unshare -rm' is refused); AFileSizeLimitLosesNothing plays it otherwise";
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  const fs::path small = folder / "small", store = small / "store", saved = folder / "saved";
  fs::create_directories(small);
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "whole")).status, 0);
  size_t full = 0,
         survived =
             0;  // how often the disk was full, and how often the first shard was there by then
  for (long pages = 1;; ++pages, ++full) {
    ASSERT_LT(pages, 64) << "even a large disk is full";
    // The file system goes with its name space: what it holds is copied out before.
    const std::string size = std::to_string(pages * ::sysconf(_SC_PAGESIZE));
    const std::string script = "unshare -rm sh -c 'mount -t tmpfs -o size=" + size + " tmpfs " +
                               small.string() + " && { \"$0\" \"$@\"; s=$?; rm -rf " +
                               saved.string() + "; mkdir " + saved.string() + "; cp -r " +
                               small.string() + "/. " + saved.string() + "; exit $s; }'";
    const Outcome outcome = run_fungi(command(folder / "data", store), script);
    if (outcome.status == 0) break;
    expect_full_disk(outcome, store, "No space left on device");
    survived += fs::exists(saved / "store/rows-00000.jsonl");
    const Outcome resumed = run_fungi(command(folder / "data", saved / "store"));
    ASSERT_EQ(resumed.status, 0) << size << ": " << resumed.err;
    EXPECT_EQ(test::contents(saved / "store"), test::contents(folder / "whole")) << size;
  }
  EXPECT_GT(full, 3u);
  EXPECT_GT(survived, 0u);
}

TEST(ExtractTrouble, AFileSizeLimitLosesNothing) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  const fs::path store = folder / "store";
  expect_full_disk(run_fungi(command(folder / "data", store), "ulimit -f 1;"), store,
                   "File too large");
  ASSERT_EQ(run_fungi(command(folder / "data", store)).status, 0);
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "whole")).status, 0);
  EXPECT_EQ(test::contents(store), test::contents(folder / "whole"));
}

TEST(ExtractTrouble, APictureTooLargeForTheMemoryIsNotCalledBroken) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take memory of their own; use another build";
#endif
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  std::string file = test::read_file(kImages / "progressive.jpg");
  const size_t frame = file.find("\xff\xc2");
  file.replace(frame + 5, 4, {'\x2e', '\xe0', '\x2e', '\xe0'});  // 12000 x 12000
  std::ofstream(folder / "data/large.jpg") << file;
  // Enough for its 432 MB of pixels, but not for twice that which libjpeg takes besides.
  const Outcome outcome =
      run_fungi(command(folder / "data", folder / "store"), "ulimit -v 1100000;");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_NE(test::read_file(folder / "store/failed.jsonl").find("not enough memory"),
            std::string::npos)
      << test::read_file(folder / "store/failed.jsonl");
}

TEST(ExtractTrouble, MissingPermissions) {
  // Root may read everything, except in a user name space where it is nobody.
  const std::string as_nobody = ::geteuid() == 0 ? "unshare -U" : "";
  if (!as_nobody.empty() && std::system("unshare -U true 2>/dev/null") != 0)
    GTEST_SKIP()
        << "root reads every file, and this system lets it give that up nowhere ('unshare -U' "
           "is refused); run the tests as another user";
  const test::TemporaryFolder folder;
  const fs::path data = folder / "data";
  write_pictures(data);
  fs::permissions(data / "a/grey.jpg", fs::perms::none);
  EXPECT_EQ(run_fungi(command(data, folder / "store"), as_nobody).status, 3);
  EXPECT_EQ(failures(folder / "store").at("a/grey.jpg").first, "read");
  EXPECT_NE(failures(folder / "store").at("a/grey.jpg").second.find("Permission denied"),
            std::string::npos);
  fs::permissions(data / "a/grey.jpg", fs::perms::owner_all);
  EXPECT_EQ(run_fungi(command(data, folder / "store", "--retry-failed"), as_nobody).status, 0);

  for (const char* closed :
       {"data", "data/b"}) {  // a class that silently vanished would be worse than an error
    fs::permissions(folder / closed, fs::perms::none);
    const Outcome refused = run_fungi(command(data, folder / "other"), as_nobody);
    fs::permissions(folder / closed, fs::perms::owner_all);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find("Permission denied"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find((folder / closed).string()), std::string::npos) << refused.err;
    EXPECT_FALSE(fs::exists(folder / "other"));
  }
  fs::create_directory(folder / "locked");
  fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  const Outcome unwritable = run_fungi(command(data, folder / "locked/store"), as_nobody);
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_NE(unwritable.err.find("Permission denied"), std::string::npos) << unwritable.err;
}

TEST(ExtractTrouble, AStoreThatCannotBeWrittenToIsNoErrorWhereNothingIsToBeDone) {
  const std::string as_nobody = ::geteuid() == 0 ? "unshare -U" : "";
  if (!as_nobody.empty() && std::system("unshare -U true 2>/dev/null") != 0)
    GTEST_SKIP() << "root writes everywhere; run the tests as another user";
  const test::TemporaryFolder folder;
  const fs::path data = folder / "data", store = folder / "store";
  write_pictures(data);
  ASSERT_EQ(run_fungi(command(data, store)).status, 0);
  fs::remove(store / ".lock");
  const auto before = test::contents(store);
  fs::permissions(store, fs::perms::owner_read | fs::perms::owner_exec);
  for (const char* more : {"", "--dry-run"}) {
    const Outcome same = run_fungi(command(data, store, more), as_nobody);
    EXPECT_EQ(same.status, 0) << same.err;
    EXPECT_NE(same.out.find(*more ? " 0 to compute" : " 0 computed now"), std::string::npos)
        << same.out;
  }
  const auto refused = [&](const std::string& more) {
    const Outcome o = run_fungi(command(data, store, more), as_nobody);
    EXPECT_EQ(o.status, 1) << more;
    EXPECT_NE(o.err.find("cannot be written to: Permission denied"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("choose another folder"), std::string::npos) << o.err;
  };
  refused("--overwrite --dry-run");
  fs::create_directory(folder / "aside");
  for (const char* name : {"grey8.png", "lossy.webp"})
    fs::rename(data / "b" / name, folder / "aside" / name);
  for (const char* more : {"--prune", "--prune --dry-run"}) refused(more);  // a whole shard goes
  for (const char* name : {"grey8.png", "lossy.webp"})
    fs::rename(folder / "aside" / name, data / "b" / name);
  fs::copy(data / "a/grey.jpg", data / "a/new.jpg");
  for (const char* more : {"", "--dry-run"}) refused(more);
  fs::permissions(store, fs::perms::owner_all);
  EXPECT_EQ(test::contents(store), before);
}

TEST(ExtractTrouble, AnotherModelIsRefusedAndChangesNothing) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  ASSERT_EQ(run_fungi(command(folder / "data", folder / "store")).status, 0);
  const auto before = test::contents(folder / "store");
  for (const std::string& more :
       {"-o " + (folder / "store").string(),
        "-o " + (folder / "new").string() + " --like " + (folder / "store").string()}) {
    const Outcome other =
        run_fungi("extract " + (folder / "data").string() + " -m " + kGolden +
                  "timm_vit_avg/model.safetensors --set heads=4 --objectives kl --shard 4 " + more);
    EXPECT_EQ(other.status, 1);
    EXPECT_NE(other.err.find("model"), std::string::npos) << other.err;
    EXPECT_EQ(test::contents(folder / "store"), before);
  }
  EXPECT_FALSE(fs::exists(folder / "new/manifest.json"));
}

TEST(ExtractTrouble, OverwriteThrowsNothingAwayBeforeARefusal) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  test::write_file(folder / "junk/a.jpg", "no picture");
  const fs::path store = folder / "store", old = folder / "old";
  ASSERT_EQ(run_fungi(command(folder / "data", store)).status, 0);
  fs::copy(store, old, fs::copy_options::recursive);
  const auto before = test::contents(store);
  const auto refused = [&](const std::string& arguments, const std::string& reason) {
    const Outcome o = run_fungi(arguments);
    EXPECT_EQ(o.status, 1) << arguments;
    EXPECT_NE(o.err.find(reason), std::string::npos) << o.err;
    EXPECT_EQ(test::contents(store), before) << reason;
  };
  std::string list;
  for (size_t i = 0; i < 100001; ++i) list += "data/" + std::to_string(i) + ".jpg\n";
  test::write_file(folder / "list.txt", list);
  std::string small = command(folder / "list.txt", store, "--overwrite");
  refused(small.replace(small.find("--shard 4"), 9, "--shard 1"), "at most 100000");
  refused("extract " + (folder / "junk").string() + " -m " + kGolden +
              "timm_vit/model.safetensors --set heads=4 --objectives simclr:width=8,negatives=2 "
              "--overwrite -o " +
              store.string(),
          "support samples could be used");
  const fs::path state = old / "state/kl-head-weight.npy";
  std::string bytes = test::read_file(state);
  bytes.back() ^= 1;
  test::write_file(state, bytes);
  refused(command(folder / "data", store, "--overwrite --like " + old.string()), "checksum");
  EXPECT_EQ(run_fungi(command(folder / "data", store, "--overwrite")).status, 0);
}

TEST(ExtractTrouble, FactorsBesideIbotAreRefusedWithTheReason) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  const Outcome o = run_fungi("extract " + (folder / "data").string() + " -m " + kGolden +
                              "timm_vit/model.safetensors --set heads=4 --objectives kl ibot "
                              "--keep-factors -o " +
                              (folder / "store").string());
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("'ibot', whose gradient comes from all patch tokens"), std::string::npos)
      << o.err;
  EXPECT_EQ(o.err.find("default layer"), std::string::npos) << o.err;
}

TEST(ExtractTrouble, ShardsAreSmallerWhereSamplesCostMore) {
  const test::TemporaryFolder folder;
  write_pictures(folder / "data");
  const std::string base = "extract " + (folder / "data").string() + " -m " + kGolden +
                           "timm_vit/model.safetensors --set heads=4 ";
  ASSERT_EQ(run_fungi(base + "--objectives kl -o " + (folder / "cheap").string()).status, 0);
  ASSERT_EQ(
      run_fungi(base + "--objectives kl dino:width=8 -o " + (folder / "costly").string()).status,
      0);
  auto shard = [](const fs::path& store) {
    return nlohmann::json::parse(test::read_file(store / "manifest.json"))["shard_size"].get<int>();
  };
  EXPECT_EQ(shard(folder / "cheap"), 512);
  EXPECT_EQ(shard(folder / "costly"), 64);
}

}  // namespace
}  // namespace fungi
