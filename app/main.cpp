// SPDX-License-Identifier: Apache-2.0
// fungi: one binary, one verb per file. Results go to stdout, progress and errors to stderr; exit
// codes are in cli.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "app/cli.h"
#include "app/data_report.h"
#include "app/ranks.h"
#include "app/words.h"
#include "fungi/base/error.h"

namespace fungi::app {
namespace {

// Edit distance, for "did you mean".
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

// The verb that a word is nearest to, or the option, if it has a dash; empty: none is near.
std::string suggestion(const CLI::App& app, const std::string& word) {
  std::string best;
  size_t best_distance = 3;  // further away is no help
  auto consider = [&](const std::string& candidate) {
    if (const size_t d = distance(word, candidate); d < best_distance)
      best = candidate, best_distance = d;
  };
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    if (!word.starts_with('-'))
      consider(verb->get_name());
    else if (verb->parsed())
      for (const CLI::Option* option : verb->get_options())
        for (const std::string& name : option->get_lnames()) consider("--" + name);
  }
  return best;
}

// The first option that nobody knows, if there is one; what follows "--" is none.
std::string unknown_option(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  for (const CLI::App* verb : app.get_subcommands())
    for (const std::string& word : verb->remaining()) words.push_back(word);
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1])))
      return word.substr(0, word.find('='));
  }
  return "";
}

// An unknown option is named first: a misspelt one may be why another is missing.
int explain(const CLI::App& app, const CLI::ParseError& e, const std::string& first_word) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  const std::string verb = verbs.empty() ? "" : verbs.front()->get_name() + " ";
  const std::string option = unknown_option(app);
  const bool no_verb = verbs.empty() && !first_word.empty() && first_word[0] != '-';
  const std::string word = !option.empty() ? option : verbs.empty() ? first_word : "";
  const std::string meant = word.empty() ? "" : suggestion(app, word);
  if (!option.empty() && meant == option)
    say("fungi: the option '{}' belongs to the verb: put it after '{}'", option,
        verb.substr(0, verb.size() - 1));
  else if (!option.empty())
    say("fungi: there is no option '{}'", shown(option));
  else if (no_verb)
    say("fungi: there is no verb '{}'", shown(first_word));
  else
    say("fungi: {}", shown(e.what(), true));
  say(".{}\nSee fungi {}--help.\n",
      meant.empty() || meant == option ? "" : fmt::format(" Did you mean '{}'?", meant), verb);
  return kUsage;
}

// The parser takes -1, and all that is too large, for the largest count there is, and 010 for 8.
CLI::Validator whole_number(uint64_t least) {
  const auto decimal = [least](std::string& text) -> std::string {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range)
      return fmt::format("expected a whole number of at most {}, found {}", UINT64_MAX, text);
    if (error != std::errc() || end != text.data() + text.size() || value < least)
      return fmt::format("expected a whole number of at least {}, found {}", least,
                         text.empty() ? "nothing" : text);
    text = std::to_string(value);
    return "";
  };
  return CLI::Validator(decimal, "");
}

CLI::Validator finite_number() {
  const auto check = [](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && !std::isfinite(value)
               ? "expected a finite number, found " + text
               : std::string();
  };
  return CLI::Validator(check, "");
}

// A variable of a script that is not set is no wish to leave an option out.
CLI::Validator not_empty() {
  const auto check = [](const std::string& text) {
    return text.empty() ? "expected a word, found nothing" : std::string();
  };
  return CLI::Validator(check, "");
}

// Help as one would write it: "fungi extract DATA -m MODEL -o STORE [OPTIONS]". Lists of options
// take every word that follows them, so what has no dash stands first.
class Help final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string line = "Usage: " + name;
    for (const CLI::Option* o : app->get_options())
      if (o->get_positional()) line += " " + make_option_usage(o);
    for (const CLI::Option* o : app->get_options())
      if (!o->get_positional() && o->get_required())
        line += fmt::format(
            " {} {}",
            o->get_snames().empty() ? "--" + o->get_lnames().at(0) : "-" + o->get_snames()[0],
            o->get_type_name());
    if (!app->get_subcommands(nullptr).empty()) line += " VERB";
    return line + " [OPTIONS]\n";
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    if (positional) std::transform(name.begin(), name.end(), name.begin(), ::toupper);
    return name;
  }
};

// A file that is opened later must not become stdout or stderr because a caller has closed them.
// Writing to what takes their place fails, as it did.
void occupy_standard_descriptors() {
  for (int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC); descriptor >= 0;
       descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC))
    if (descriptor > 2) {
      close(descriptor);
      return;
    }
}

// Whether stdout is a pipe that nobody reads any more. Asked of the pipe, since what failed to be
// written, and with which errno, may be long ago.
bool reader_has_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

// What takes the memory of a verb, and how it takes less.
std::string memory_hint(const CLI::App& verb) {
  const std::string name = verb.get_name();
  if (name == "project") return "use fewer threads (-j) or a smaller --projection-dim";
  for (const char* with_model :
       {"extract", "segment", "reproduce", "inspect", "models", "info", "bench"})
    if (name == with_model) return "use fewer threads (-j) or a smaller model";
  return fmt::format(
      "use {}a store of fewer columns ('fungi project', or 'fungi extract' with a smaller "
      "--projection-dim)",
      verb.get_option_no_throw("--features") ? "fewer blocks (--features), or " : "");
}

}  // namespace

void tell(const Error& error) {
  const Error own = worded(error);
  say("fungi: {}{}{}\n", own.place().empty() ? "" : shown(own.place()) + ": ",
      shown(own.message(), true), own.hint().empty() ? "" : "\n  hint: " + shown(own.hint(), true));
}

namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "Better neighbours from a frozen transformer: embeddings joined with gradients of "
      "self-supervised losses.",
      "fungi"};
  app.set_version_flag("--version", FUNGI_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  for (AddVerb add :
       {add_data,    add_extract, add_merge,    add_plan,  add_project,   add_knn,    add_choose,
        add_linear,  add_kmeans,  add_retrieve, add_cka,   add_pca,       add_index,  add_search,
        add_segment, add_prompts, add_report,   add_serve, add_reproduce, add_export, add_pull,
        add_inspect, add_models,  add_info,     add_bench}) {
    CLI::App* self = nullptr;
    Verb verb = add(app, self);
    for (CLI::Option* option : self->get_options())
      if (const std::string type = option->get_type_name(); type == kCount)
        option->transform(whole_number(1));
      else if (type.starts_with(CLI::detail::type_name<size_t>()))
        option->transform(whole_number(0));
      else if (type.starts_with(CLI::detail::type_name<double>()))
        option->check(finite_number());
      else if (option->get_type_size() > 0)  // no flag
        option->check(not_empty());
    verbs.emplace_back(self, std::move(verb));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    return explain(app, e, argc > 1 ? argv[1] : "");
  }
  for (auto& [self, verb] : verbs) {
    if (!self->parsed()) continue;
    try {
      require_alone(self->get_name());
      return verb();
    } catch (const std::bad_alloc&) {
      say("fungi: out of memory\n  hint: {}\n", memory_hint(*self));
      return kError;
    }
  }
  return kUsage;
}

}  // namespace
}  // namespace fungi::app

int main(int argc, char** argv) {
  using fungi::app::say;
  using fungi::app::shown;
  int status = fungi::app::kError;
  fungi::app::occupy_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error of the write, with a message
  std::signal(SIGPIPE, SIG_IGN);  // who stops reading our notes does not end the work
  try {
    status = fungi::app::run(argc, argv);
  } catch (const fungi::Error& e) {
    fungi::app::tell(e);
  } catch (const std::filesystem::filesystem_error& e) {
    say("fungi: {}: {}\n  hint: check the path and its permissions\n", shown(e.path1().string()),
        e.code().message());
  } catch (const std::exception& e) {
    // What printing throws is told below.
    if (!std::ferror(stdout)) say("fungi: internal error: {}\n", e.what());
  }
  errno = 0;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  if (fungi::app::reader_has_left()) {  // "fungi models | head": no complaint, as with other tools
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  say("fungi: the result could not be written to stdout{}{}\n  hint: is the disk full, or was "
      "stdout closed? What the verb wrote into files is there; repeat it for the result\n",
      errno ? ": " : "", errno ? std::strerror(errno) : "");
  return fungi::app::kError;
}
