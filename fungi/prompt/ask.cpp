// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "fungi/base/random.h"

namespace fungi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongestRetryAfter = 600;  // seconds; a longer one is no wait but an end
constexpr size_t kMostInARow = 3;           // failures without an answer between them
constexpr size_t kTroublesShown = 3;
constexpr size_t kShownLetters = 300;  // of what a server says

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

std::string shortened(std::string text) {
  if (text.size() > kShownLetters) {
    size_t end = kShownLetters;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    text += " ...";
  }
  return text;
}

enum class Verdict { answer, again, refused, end };

// Whether a reply is one, may be another one later, never will be, or will be that of all requests.
Verdict judge(const HttpReply& reply) {
  if (reply.status == 200) return completion_text(reply.body) ? Verdict::answer : Verdict::again;
  if (reply.status == 0 || reply.status >= 500 || reply.status == 408 || reply.status == 409 ||
      reply.status == 425 || reply.status == 429)
    return Verdict::again;
  if (reply.status == 400 || reply.status == 413 || reply.status == 422) return Verdict::refused;
  return Verdict::end;
}

std::string trouble_of(const HttpReply& reply) {
  if (reply.status == 0) return reply.trouble;
  if (reply.status == 200)
    return fmt::format("expected a chat completion, found {}",
                       reply.body.empty() ? "nothing" : shortened(reply.body));
  const std::string said = refusal_text(reply.body);
  return fmt::format("status {}{}", reply.status, said.empty() ? "" : ": " + shortened(said));
}

const char* hint_for(int status) {
  if (status == 401 || status == 403)
    return "put a key of this server into the environment variable that `key_variable` names";
  if (status >= 300 && status < 400) return "give the address that the server itself has";
  return "check `endpoint` (the part before /chat/completions) and the name of the language model";
}

class Asking {
 public:
  Asking(const Prompts& prompts, ReplyFile& file, const OpenSession& open, const ApiKey& key,
         const AskOptions& o)
      : prompts_(prompts), file_(file), open_(open), key_(key), o_(o) {
    result_.requests = prompts.size();
    find_work();
  }

  AskResult run() {
    report();
    std::vector<std::thread> threads;
    const size_t count = std::min(std::max<size_t>(o_.parallel, 1), work_.size());
    try {
      for (size_t t = 0; t < count; ++t) threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more of them: those that are there do it all
      if (threads.empty()) throw;
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    result_.left = result_.requests - result_.earlier - result_.answered - result_.failed;
    return result_;
  }

 private:
  // Requests that never failed come first: one that always does keeps nobody from going on.
  void find_work() {
    std::unordered_map<std::string, const PromptReply*> earlier;
    for (const PromptReply& reply : file_.earlier()) earlier.emplace(reply.id, &reply);
    std::vector<size_t> failed;
    for (size_t i = 0; i < prompts_.size(); ++i) {
      const PromptRequest request = prompts_.request(i);
      const auto at = earlier.find(request.id);
      if (at == earlier.end()) {
        work_.push_back(i);
        continue;
      }
      const PromptReply& reply = *at->second;
      if (!reply.request.empty() && reply.request != request_checksum(request))
        fail(fmt::format("the reply to '{}' in line {} is one to another request: other examples, "
                         "words or another language model",
                         reply.id, reply.line),
             file_.name(), "name another file with `replies`, or give the options of that run");
      if (reply.text)
        ++result_.earlier;
      else
        failed.push_back(i);
    }
    work_.insert(work_.end(), failed.begin(), failed.end());
  }

  bool over() const { return ended_ || (o_.stop && *o_.stop); }

  // Waits for a time, but not when all is over.
  void wait_until(Clock::time_point time) const {
    constexpr std::chrono::milliseconds kLook{20};
    while (!over() && Clock::now() < time)
      std::this_thread::sleep_for(std::min<Clock::duration>(kLook, time - Clock::now()));
  }

  void work() {
    try {
      const std::unique_ptr<HttpSession> session = open_();
      for (size_t next; !over() && (next = next_++) < work_.size();)
        ask_one(prompts_.request(work_[next]), *session);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      ended_ = true;
    }
  }

  // What is on its way when all is over is waited for: somebody pays for it.
  void ask_one(const PromptRequest& request, HttpSession& session) {
    const RandomStream random(uint64_t(Clock::now().time_since_epoch().count()), "prompts/wait");
    for (size_t attempt = 0;; ++attempt) {
      wait_until(held_until());
      if (over()) return;
      HttpReply reply = session.post(request.body);
      reply.body = key_.hidden(std::move(reply.body));
      reply.trouble = key_.hidden(std::move(reply.trouble));
      const Verdict verdict = judge(reply);
      if (verdict == Verdict::answer) return add_answer(request, reply);
      if (verdict == Verdict::end) fail(trouble_of(reply), "`endpoint`", hint_for(reply.status));
      const bool too_long = reply.retry_after && *reply.retry_after > kLongestRetryAfter;
      if (verdict == Verdict::refused || too_long || attempt + 1 >= o_.tries)
        return add_failure(request, reply, verdict, attempt + 1);
      note_again(request, reply);
      const double longest = std::min(o_.longest_wait, std::ldexp(o_.first_wait, int(attempt)));
      const double wait = reply.retry_after.value_or(longest * 0.5) +
                          random.uniform(attempt) * 0.5 * longest;  // not all at the same moment
      const Clock::time_point until = Clock::now() + seconds(wait);
      if (reply.retry_after) hold(until);
      wait_until(until);
    }
  }

  void note_again(const PromptRequest& request, const HttpReply& reply) {
    const std::lock_guard lock(mutex_);
    if (o_.note && !std::exchange(noted_, true))
      o_.note(fmt::format("{}: {}; it is tried again, and so are others", request.id,
                          trouble_of(reply)));
  }

  // A server that names a time names it for everybody.
  void hold(Clock::time_point until) {
    const std::lock_guard lock(mutex_);
    hold_ = std::max(hold_, until);
  }
  Clock::time_point held_until() {
    const std::lock_guard lock(mutex_);
    return hold_;
  }

  void add_answer(const PromptRequest& request, const HttpReply& reply) {
    const std::lock_guard lock(mutex_);
    file_.add_answer(request, reply.body);
    ++result_.answered;
    in_a_row_ = 0;
    report();
  }

  // A request that the server refuses is at fault itself, unless it is the same with all of them;
  // of a server that does not answer any more nothing is to be hoped.
  void add_failure(const PromptRequest& request, const HttpReply& reply, Verdict verdict,
                   size_t tries) {
    const std::lock_guard lock(mutex_);
    const std::string trouble = trouble_of(reply);
    file_.add_failure(request, reply.status, trouble);
    ++result_.failed;
    if (result_.first_troubles.size() < kTroublesShown)
      result_.first_troubles.push_back(fmt::format("{}: {}", request.id, trouble));
    const bool own = verdict == Verdict::refused && result_.earlier + result_.answered > 0;
    if (!own && ++in_a_row_ >= kMostInARow && !ended_) {
      fail(verdict == Verdict::refused
               ? fmt::format("the server refuses request after request; the last: {}", trouble)
               : fmt::format("request after request has no answer after {} tries; the last: {}",
                             tries, trouble),
           "`endpoint`",
           verdict == Verdict::refused
               ? "mend what it says"
               : "repeat the command when the server is back: replies so far are kept");
    }
    report();
  }

  void report() const {
    if (o_.progress)
      o_.progress(result_.earlier + result_.answered + result_.failed, result_.requests,
                  result_.failed);
  }

  const Prompts& prompts_;
  ReplyFile& file_;
  const OpenSession& open_;
  const ApiKey& key_;
  const AskOptions& o_;
  std::vector<size_t> work_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;  // of all below, and of the file
  AskResult result_;
  Clock::time_point hold_{};
  size_t in_a_row_ = 0;
  bool noted_ = false;
  std::exception_ptr error_;
};

}  // namespace

AskResult ask(const Prompts& prompts, ReplyFile& file, const OpenSession& open, const ApiKey& key,
              const AskOptions& options) {
  return Asking(prompts, file, open, key, options).run();
}

}  // namespace fungi
