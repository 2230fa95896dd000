// SPDX-License-Identifier: Apache-2.0
// The only file that knows libsndfile.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "fungi/base/error.h"
#include "fungi/input/codec.h"
#include "fungi/input/sound_file.h"

#ifdef FUNGI_HAVE_SNDFILE
#include <fcntl.h>
#include <sndfile.h>
#include <unistd.h>

namespace fungi::codec {

const bool kHaveSoundFiles = true;

namespace {

// What libsndfile reads through: the bytes of a member of an archive, say.
struct Memory {
  std::span<const uint8_t> bytes;
  sf_count_t at = 0;

  static sf_count_t length(void* self) { return sf_count_t(of(self).bytes.size()); }
  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    Memory& m = of(self);
    const sf_count_t size = length(self);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? m.at : size;
    if (offset < -from || offset > size - from) return -1;
    return m.at = from + offset;
  }
  static sf_count_t read(void* out, sf_count_t count, void* self) {
    Memory& m = of(self);
    const sf_count_t got = std::clamp<sf_count_t>(count, 0, length(self) - m.at);
    if (got > 0) std::memcpy(out, m.bytes.data() + m.at, size_t(got));
    m.at += got;
    return got;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* self) { return of(self).at; }
  static Memory& of(void* self) { return *static_cast<Memory*>(self); }
};

bool is_read(int format) {
  constexpr std::array kContainers{SF_FORMAT_WAV,  SF_FORMAT_WAVEX, SF_FORMAT_RF64, SF_FORMAT_W64,
                                   SF_FORMAT_AIFF, SF_FORMAT_AU,    SF_FORMAT_CAF,  SF_FORMAT_FLAC,
                                   SF_FORMAT_OGG,  SF_FORMAT_MPEG};
  const int container = format & SF_FORMAT_TYPEMASK;
  return std::find(kContainers.begin(), kContainers.end(), container) != kContainers.end();
}

// "data : 64000 (should be 38382)" in what libsndfile notes while it opens a file. Sizes that
// programs write which do not know them yet say nothing.
bool speaks_of_more(std::string_view log) {
  for (size_t at = 0; (at = log.find("(should be ", at)) != log.npos; ++at) {
    const size_t line = log.rfind('\n', at) + 1;  // npos + 1 == 0
    const std::string_view head = log.substr(line, at - line);
    const size_t colon = head.find(':');
    if (colon == head.npos) continue;
    std::string_view chunk = head.substr(0, colon);
    while (!chunk.empty() && chunk.front() == ' ') chunk.remove_prefix(1);
    while (!chunk.empty() && chunk.back() == ' ') chunk.remove_suffix(1);
    constexpr std::array<std::string_view, 5> kSizes{"data", "SSND", "Data Size", "riff",
                                                     "Riff size"};  // AU's, W64's, RF64's
    if (std::find(kSizes.begin(), kSizes.end(), chunk) == kSizes.end()) continue;
    const auto number = [](std::string_view text) {
      uint64_t value = 0;
      for (const char c : text)
        if (c >= '0' && c <= '9') value = value * 10 + uint64_t(c - '0');
      return value;
    };
    const uint64_t said = number(head.substr(colon)),
                   there = number(log.substr(at + 11, log.find(')', at) - at - 11));
    if (said > there && said < 0x7FFFF000) return true;
  }
  return false;
}

// The last page of an OGG stream says that it is the last one; pages are shorter than this.
constexpr size_t kLongestPage = 65307;

bool lacks_last_page(std::span<const uint8_t> end) {
  for (size_t at = end.size(); at-- > 0;)
    if (starts_with(end, "OggS", at)) return at + 5 >= end.size() || !(end[at + 5] & 4);
  return true;
}

}  // namespace

struct SoundFile::State {
  std::string name;
  Memory memory;
  SNDFILE* file = nullptr;
  SF_INFO info{};
  bool cut_off = false;

  ~State() {
    if (file) sf_close(file);
  }
  void opened(std::span<const uint8_t> first, std::span<const uint8_t> last) {
    if (!file || !is_read(info.format)) {
      const std::string why = file ? "" : sf_strerror(nullptr);
      fail_unread_sound(first, name, why);
    }
    std::array<char, 1 << 14> log{};
    sf_command(file, SFC_GET_LOG_INFO, log.data(), int(log.size()) - 1);
    cut_off = speaks_of_more(log.data());
    if ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG) cut_off = lacks_last_page(last);
  }
};

SoundFile::SoundFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SoundFile::SoundFile(SoundFile&&) noexcept = default;
SoundFile::~SoundFile() = default;

SoundFile SoundFile::open(std::span<const uint8_t> bytes, std::string_view name) {
  auto state = std::make_unique<State>();
  state->name = name;
  state->memory.bytes = bytes;
  SF_VIRTUAL_IO io{Memory::length, Memory::seek, Memory::read, Memory::write, Memory::tell};
  state->file = sf_open_virtual(&io, SFM_READ, &state->info, &state->memory);
  state->opened(bytes, bytes.last(std::min(bytes.size(), kLongestPage)));
  return SoundFile(std::move(state));
}

SoundFile SoundFile::open(const std::filesystem::path& path) {
  // A pipe of such a name is refused instead of waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail_reading("cannot open the file", errno, path);
  std::array<uint8_t, 1024> first{};
  std::array<uint8_t, kLongestPage> last{};
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  const auto got = [&](std::span<uint8_t> into, off_t at) {
    const ssize_t count = ::pread(descriptor, into.data(), into.size(), at);
    return into.first(size_t(std::max<ssize_t>(count, 0)));
  };
  const auto begin = got(first, 0), end = got(last, std::max<off_t>(size - off_t(last.size()), 0));
  ::lseek(descriptor, 0, SEEK_SET);
  auto state = std::make_unique<State>();
  state->name = path.string();
  state->file = sf_open_fd(descriptor, SFM_READ, &state->info, SF_TRUE);
  state->opened(begin, end);
  return SoundFile(std::move(state));
}

double SoundFile::rate() const { return state_->info.samplerate; }
size_t SoundFile::channels() const { return size_t(std::max(state_->info.channels, 0)); }
uint64_t SoundFile::frames() const {
  const sf_count_t frames = state_->info.frames;
  return frames <= 0 || frames == SF_COUNT_MAX ? 0 : uint64_t(frames);
}
// Encoders of MP3 count their delay in or leave it out: some frames of 1152.
uint64_t SoundFile::slack() const {
  return (state_->info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG ? 4 * 1152 : 0;
}
bool SoundFile::is_cut_off() const { return state_->cut_off; }

void SoundFile::seek(uint64_t frame) {
  if (sf_seek(state_->file, sf_count_t(frame), SEEK_SET) != sf_count_t(frame))
    fail(fmt::format("there is no sample {} in the file", frame), state_->name,
         "its header may be wrong: convert it anew");
}

size_t SoundFile::read(float* out, size_t frames) {
  const sf_count_t got = sf_readf_float(state_->file, out, sf_count_t(frames));
  if (const int error = sf_error(state_->file))
    fail(fmt::format("the sound is damaged: {}", sf_error_number(error)), state_->name,
         "convert it anew; `allow_truncated` keeps what stands before");
  return size_t(std::max<sf_count_t>(got, 0));
}

}  // namespace fungi::codec

#else

namespace fungi::codec {

const bool kHaveSoundFiles = false;

namespace {
[[noreturn]] void fail_without(std::string_view name) {
  fail("this program was built without libsndfile, which reads sounds", std::string(name),
       "install libsndfile1-dev and build it again with -DFUNGI_SNDFILE=ON");
}
}  // namespace

struct SoundFile::State {};
SoundFile::SoundFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SoundFile::SoundFile(SoundFile&&) noexcept = default;
SoundFile::~SoundFile() = default;
SoundFile SoundFile::open(std::span<const uint8_t>, std::string_view name) { fail_without(name); }
SoundFile SoundFile::open(const std::filesystem::path& file) { fail_without(file.string()); }
double SoundFile::rate() const { return 0; }
size_t SoundFile::channels() const { return 0; }
uint64_t SoundFile::frames() const { return 0; }
uint64_t SoundFile::slack() const { return 0; }
bool SoundFile::is_cut_off() const { return false; }
void SoundFile::seek(uint64_t) {}
size_t SoundFile::read(float*, size_t) { return 0; }

}  // namespace fungi::codec

#endif
