// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "fungi/base/descriptor.h"
#include "fungi/base/error.h"
#include "fungi/hub/checksum.h"
#include "fungi/hub/places.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHub = "https://huggingface.co";
constexpr size_t kLargestListing = size_t{64} << 20;
constexpr double kMostPatience = 600;  // seconds that a server may tell us to wait

std::string address_of(const PullOptions& o) {
  if (!o.endpoint.empty()) return o.endpoint;
  const char* stated = std::getenv("HF_ENDPOINT");
  return stated && *stated ? stated : kHub;
}

bool may_pass(int status) {
  return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

// "W/"abc"" as abc, where that is a sum.
std::string sum_in(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  const bool sum = (etag.size() == 40 || etag.size() == 64) &&
                   etag.find_first_not_of("0123456789abcdef") == std::string::npos;
  return sum ? etag : "";
}

std::optional<uint64_t> number_in(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return {};
  return std::stoull(text);
}

// One file on its way: what is there of it, and whether it is what was promised.
class Part {
 public:
  Part(HubFile& file, const std::string& commit, fs::path target)
      : file_(file),
        commit_(commit),
        target_(std::move(target)),
        name_(target_.string() + ".part") {
    opened_ = Descriptor(::open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (opened_.number < 0) give_up("be created");
    if (::flock(opened_.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      fail("another program is fetching this file", target_.string(), "wait for it to end");
    struct stat there {};
    if (::fstat(opened_.number, &there) != 0) give_up("be looked at");
    done_ = uint64_t(there.st_size);
    if (file_.bytes && done_ > *file_.bytes) restart();
  }

  uint64_t done() const { return done_; }
  uint64_t came() const { return came_; }
  bool whole() const { return file_.bytes && done_ == *file_.bytes && !file_.checksum.empty(); }
  const std::string& trouble() const { return trouble_; }

  bool begin(const GetReply& reply) {
    if (const std::string at = reply.header("x-repo-commit"); !at.empty() && at != commit_)
      return refuse(fmt::format("expected revision {}, found another", commit_));
    std::string sum = sum_in(reply.header("x-linked-etag"));
    if (sum.empty() && file_.checksum.empty()) sum = sum_in(reply.header("etag"));
    if (file_.checksum.empty()) file_.checksum = sum;
    if (file_.checksum.empty()) return refuse("the server tells no sum to check it by");
    if (!sum.empty() && sum.size() == file_.checksum.size() && sum != file_.checksum)
      return refuse(
          fmt::format("expected the sum {}, found {}: it is changing", file_.checksum, sum));
    if (reply.status == 206 &&
        !reply.header("content-range").starts_with(fmt::format("bytes {}-", done_)))
      return refuse("the server sends another part than it was asked for");
    if (reply.status == 200 && done_ > 0) restart();  // it has no ranges
    if (!file_.bytes) file_.bytes = number_in(reply.header("x-linked-size"));
    if (!file_.bytes)
      if (const auto rest = number_in(reply.header("content-length"))) file_.bytes = done_ + *rest;
    if (!file_.bytes) return refuse("the server tells no length");
    return true;
  }

  bool take(std::span<const std::byte> bytes) {
    if (bytes.size() > *file_.bytes - done_)
      return refuse(fmt::format("expected {} bytes, found more: it is changing", *file_.bytes));
    if (!write_all_at(opened_, done_, bytes)) give_up("be written");
    done_ += bytes.size(), came_ += bytes.size();
    return true;
  }

  // What is there of the whole. It is read again: what an earlier run wrote, too.
  bool right() {
    HubChecksum sum(file_.checksum, *file_.bytes);
    std::vector<std::byte> buffer(size_t{1} << 20);
    for (uint64_t at = 0; at < done_;) {
      const auto some = std::span(buffer).first(std::min<uint64_t>(buffer.size(), done_ - at));
      if (!read_all_at(opened_, at, some)) give_up("be read");
      sum.add(some);
      at += some.size();
    }
    return (found_ = sum.hex()) == file_.checksum;
  }
  const std::string& found() const { return found_; }

  void restart() {
    if (::ftruncate(opened_.number, 0) != 0) give_up("be emptied");
    done_ = 0;
  }
  void finish() {
    if (::fsync(opened_.number) != 0) give_up("be flushed");
    if (::rename(name_.c_str(), target_.c_str()) != 0) give_up("be renamed into place");
  }
  void remove() { ::unlink(name_.c_str()); }

 private:
  bool refuse(std::string why) {
    trouble_ = std::move(why);
    return false;
  }
  [[noreturn]] void give_up(const char* what) const {
    fail(fmt::format("cannot {}: {}", what, std::generic_category().message(errno)), name_,
         "check the folder, its permissions and the free space; FUNGI_HOME may name another");
  }

  HubFile& file_;
  const std::string& commit_;
  fs::path target_;
  std::string name_, trouble_, found_;
  Descriptor opened_;
  uint64_t done_ = 0, came_ = 0;
};

}  // namespace

HubFetcher::HubFetcher(const HubModelName& name, const PullOptions& options)
    : name_(name), options_(options), endpoint_(parse_hub_endpoint(address_of(options))) {
  bool from_file = false;
  token_ = read_hub_token(from_file);
  const bool own = endpoint_.origin == parse_hub_endpoint(kHub).origin;
  std::string why;
  if (!endpoint_.encrypted && !endpoint_.loopback)
    why = "the address is not encrypted";
  else if (from_file && !own)
    why = "it is the hub's own, kept in a file; export it as HF_TOKEN for a mirror";
  if (!token_.empty() && !why.empty()) {
    token_.clear();
    if (options_.note) options_.note(fmt::format("no token is sent: {}", why));
  }
  session_ =
      open_hub_session(endpoint_, token_, {.timeout = options.timeout, .stop = options.stop});
}

std::string HubFetcher::shown(std::string text) const {
  constexpr size_t kMost = 200;
  for (size_t at = 0; !token_.empty() && (at = text.find(token_, at)) != std::string::npos;)
    text.replace(at, token_.size(), "[token]");
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  return text.substr(0, kMost);
}

void HubFetcher::refuse(const GetReply& reply, const std::string& what) const {
  const std::string code = reply.header("x-error-code"), place = name_.id + what;
  const std::string said = shown(reply.header("x-error-message"));
  const std::string status =
      fmt::format("status {}{}{}", reply.status, said.empty() ? "" : ": ", said);
  if (reply.status == 0)
    fail(fmt::format("{}: {}", endpoint_.url, shown(reply.trouble)), place,
         "repeat the command to go on; HTTPS_PROXY names a proxy, `endpoint` a mirror, and "
         "`offline` uses what is here");
  if (reply.status == 429 || reply.status >= 500)
    fail(fmt::format("the hub is busy ({})", status), place,
         "repeat the command later: it goes on");
  if (code == "GatedRepo" || (reply.status == 403 && code.empty()))
    fail(fmt::format("the authors of this model grant access to it, and have not granted it to {} "
                     "({})",
                     token_.empty() ? "somebody without a token" : "the owner of this token",
                     status),
         place,
         fmt::format("ask for it on its page, {}/{}, then export the token of your account as "
                     "HF_TOKEN",
                     endpoint_.url, name_.id));
  if (reply.status == 401)
    fail(fmt::format("there is no such model, or it is private{} ({})",
                     token_.empty() ? "" : " and not for the owner of this token", status),
         place, "check the name; for a private model export the token of an account as HF_TOKEN");
  if (reply.status == 404 && code == "RevisionNotFound")
    fail(fmt::format("there is no revision '{}' ({})", name_.revision, status), place,
         "leave it out for the newest");
  if (reply.status == 404)
    fail(fmt::format("there is no such {} ({})", what.empty() ? "model" : "file", status), place,
         "check the name on its page");
  fail(fmt::format("the hub refuses ({})", status), place, "check the name and `endpoint`");
}

void HubFetcher::wait(double seconds) const {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < until) {
    if (options_.stop && options_.stop->load()) throw PullStopped{};
    std::this_thread::sleep_for(std::min<Clock::duration>(
        std::chrono::milliseconds(50), std::chrono::ceil<Clock::duration>(until - Clock::now())));
  }
}

GetReply HubFetcher::persist(const std::function<GetRequest()>& next,
                             const std::function<bool()>& progressed) {
  double pause = options_.first_wait;
  for (size_t failed = 0;;) {
    GetReply reply = session_->get(next());
    if (options_.stop && options_.stop->load()) throw PullStopped{};
    if (reply.refused || !may_pass(reply.status)) return reply;
    if (progressed()) failed = 0, pause = options_.first_wait;
    if (++failed >= std::max<size_t>(1, options_.tries)) return reply;
    if (reply.retry_after && *reply.retry_after > kMostPatience) return reply;
    if (options_.note && failed == 1)
      options_.note(fmt::format(
          "{}: {}; trying again", name_.id,
          reply.status ? fmt::format("status {}", reply.status) : shown(reply.trouble)));
    wait(reply.retry_after.value_or(pause));
    pause = std::min(2 * pause, options_.longest_wait);
  }
}

std::string HubFetcher::listing() {
  std::string body;
  const auto request = [&] {
    body.clear();
    GetRequest r;
    r.url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint_.url, name_.id,
                        url_encoded(name_.revision));
    r.take = [&](std::span<const std::byte> bytes) {
      if (body.size() + bytes.size() > kLargestListing) return false;
      body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    };
    return r;
  };
  const GetReply reply = persist(request, [] { return false; });
  if (reply.status == 200) return body;
  if (reply.refused && reply.trouble.empty())
    fail("the hub's answer is longer than any list of files", name_.id, "is `endpoint` a hub?");
  refuse(reply, "");
}

uint64_t HubFetcher::fetch(HubFile& file, const std::string& commit, const fs::path& path,
                           const Progress& progress) {
  fs::create_directories(path.parent_path());
  Part part(file, commit, path);
  const std::string what = "/" + file.name;
  const std::string url = fmt::format("{}/{}/resolve/{}/{}", endpoint_.url, name_.id, commit,
                                      url_encoded(file.name, "/"));
  for (bool again = false;; again = true) {
    uint64_t before = part.came();
    const auto request = [&] {
      before = part.came();
      GetRequest r{.url = url, .from = part.done()};
      r.begin = [&](const GetReply& reply) { return part.begin(reply); };
      r.take = [&](std::span<const std::byte> bytes) {
        if (!part.take(bytes)) return false;
        if (progress) progress(size_t(part.done()), size_t(*file.bytes));
        return true;
      };
      return r;
    };
    while (!part.whole()) {
      GetReply reply = persist(request, [&] { return part.came() > before; });
      if (!part.trouble().empty()) {
        part.remove();
        fail(part.trouble(), name_.id + what, "repeat the command");
      }
      if (reply.status == 416 && part.done() > 0) {
        part.restart();  // another file once had this name
        continue;
      }
      if (reply.status != 200 && reply.status != 206) refuse(reply, what);
      if (!part.whole() && part.came() == before)
        fail("the server ends before the file does", name_.id + what, "repeat the command");
    }
    if (part.right()) break;
    if (again) {
      part.remove();
      fail(fmt::format("expected the sum {}, found {}", file.checksum, part.found()),
           name_.id + what,
           "it was damaged on its way, twice: nothing of it is kept; another `endpoint` may help");
    }
    part.restart();
  }
  part.finish();
  return part.came();
}

}  // namespace fungi
