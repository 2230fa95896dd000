// SPDX-License-Identifier: Apache-2.0
#include "fungi/input/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/image.h"

namespace fungi::dataset {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLookedAt = 8192;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct Format {
  std::string_view magic;
  const char *name, *remedy;
};

constexpr char kUnpack[] = "unpack it first";
constexpr char kToJson[] = "write its rows as JSON lines (.jsonl) first";
constexpr Format kFormats[] = {
    {"\x1f\x8b", "gzip", kUnpack},
    {"BZh91AY&SY", "bzip2", kUnpack},
    {"\xfd\x37zXZ", "xz", kUnpack},
    {"\x28\xb5\x2f\xfd", "Zstandard", kUnpack},
    {"PK\x03\x04", "zip, or a spreadsheet", "unpack it, or save the sheet as .csv"},
    {"PAR1\x15", "Parquet", kToJson},
    {{"ARROW1\0\0", 8}, "Arrow", kToJson},
    {{"SQLite format 3\0", 16}, "SQLite", kToJson},
    {"\xd0\xcf\x11\xe0", "a spreadsheet or document", "save the sheet as .csv"},
    {"%PDF-", "PDF", "save its text as .txt"}};

// Which of its bytes stand in no text.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 && (byte < '\b' || byte > '\r') && byte != 0x1b;
}

// UTF-16 without a mark: each second byte of the first letters is 0.
bool looks_like_utf16(std::string_view bytes) {
  if (bytes.size() < 4 || bytes.size() % 2) bytes = bytes.substr(0, bytes.size() / 2 * 2);
  bytes = bytes.substr(0, 16);
  if (bytes.size() < 4) return false;
  bool low = true, high = true;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    low = low && bytes[i] != 0 && bytes[i + 1] == 0;
    high = high && bytes[i] == 0 && bytes[i + 1] != 0;
  }
  return low || high;
}

Descriptor unnamed_file() {
  const fs::path folder = fs::temp_directory_path();
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.number >= 0) return file;
  std::string name = (folder / "fungi-XXXXXX").string();  // not every file system knows the former
  file = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (file.number < 0) fail_reading("cannot make a temporary file", errno, folder);
  ::unlink(name.c_str());
  return file;
}

}  // namespace

void require_text(std::string_view bytes, const std::string& name) {
  const bool wide = bytes.starts_with(std::string_view("\xff\xfe\0\0", 4)) ||
                    bytes.starts_with(std::string_view("\0\0\xfe\xff", 4));
  if (wide || bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff") ||
      looks_like_utf16(bytes))
    fail(fmt::format("expected UTF-8 text, found {}", wide ? "UTF-32" : "UTF-16"), name,
         fmt::format("save it as UTF-8: 'iconv -f {} -t UTF-8 FILE > NEW'",
                     wide ? "UTF-32" : "UTF-16"));
  for (const Format& format : kFormats)
    if (bytes.starts_with(format.magic))
      fail(fmt::format("expected UTF-8 text, found a binary file: {}", format.name), name,
           format.remedy);
  const auto controls = size_t(std::count_if(bytes.begin(), bytes.end(), is_control));
  if (controls > 8 && controls > bytes.size() / 20)
    fail(fmt::format("expected UTF-8 text, found a binary file: {} of its first {} bytes are "
                     "control characters",
                     controls, bytes.size()),
         name, "give a .tsv, .csv or .jsonl file, or plain lines");
}

Text decode_text_file(std::span<const uint8_t> bytes, const std::string& name) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  require_text(text.substr(0, kLookedAt), name);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Text whole{std::string(text.substr(0, text.find_last_not_of("\r\n") + 1))};
  check(whole, name);
  return whole;
}

TextFile::TextFile(const fs::path& file)
    : name_(file == kStandardInput ? "standard input" : file.string()) {
  if (file == kStandardInput)
    file_ = Descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  else
    file_ = Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (file_.number < 0 || ::fstat(file_.number, &status) != 0)
    fail_reading("cannot open the file", errno, name_);
  if (S_ISDIR(status.st_mode)) fail("expected a file of texts, found a folder", name_);
  if (file == kStandardInput || !S_ISREG(status.st_mode)) copy_to_unnamed_file();
  size_ = uint64_t(std::max<off_t>(::lseek(file_.number, 0, SEEK_END), 0));
  const std::string first = read(0, std::min<uint64_t>(size_, kLookedAt));
  require_text(first, name_);
  if (first.starts_with(kByteOrderMark)) begin_ = kByteOrderMark.size();
}

void TextFile::copy_to_unnamed_file() {
  const Descriptor source = std::exchange(file_, unnamed_file());
  std::vector<std::byte> piece(size_t(1) << 16);
  for (;;) {
    const ssize_t got = ::read(source.number, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading("cannot read", errno, name_);
    if (got == 0) return;
    if (!write_all(file_, std::span(piece).first(size_t(got))))
      fail_reading("cannot copy it into a temporary file (TMPDIR says where)", errno, name_);
  }
}

std::string TextFile::read(uint64_t from, uint64_t to) const {
  std::string bytes(size_t(to - from), '\0');
  errno = 0;
  if (read_all_at(file_, from, std::as_writable_bytes(std::span(bytes)))) return bytes;
  if (errno) fail_reading("cannot read the file", errno, name_);
  throw Exhausted("the file has become shorter since it was opened", name_, "repeat the command");
}

}  // namespace fungi::dataset
