// SPDX-License-Identifier: Apache-2.0
#include "app/ranks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "app/cli.h"
#include "app/words.h"
#include "fungi/base/cpu.h"

namespace fungi::app {
namespace {

// Seconds after which a rank that says nothing counts as lost.
double patience() {
  constexpr double kUsual = 60;
  const char* said = std::getenv("FUNGI_RANK_TIMEOUT");
  if (!said) return kUsual;
  char* end = nullptr;
  const double seconds = std::strtod(said, &end);
  if (end == said || *end || !(seconds >= 1 && seconds <= 86400))
    fail(fmt::format("expected seconds from 1 to 86400, found '{}'", shown(said)),
         "FUNGI_RANK_TIMEOUT", "leave it out for 60");
  return seconds;
}

// What a rank but the first would print, the first one prints.
void be_silent() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO), close(nowhere);
}

bool speaks(const Comm& comm) {
  const std::optional<Error> heard = comm.failure();
  if (comm.first() || !heard) return comm.first();
  return heard->message().starts_with("rank 0 on ") &&  // it cannot speak any more
         heard->message().find(" has been silent ") != std::string::npos;
}

}  // namespace

int on_ranks(const std::function<int(Comm&)>& body) {
  if (!started_as_rank()) {
    const auto alone = make_single();
    return body(*alone);
  }
  const double seconds = patience();
  const auto comm = join_ranks(seconds);
  if (comm->alone()) return body(*comm);
  if (!comm->first()) be_silent();
  int status = kError;
  const auto end = [&](const Error& error) {
    const bool heard = comm->failure().has_value();
    comm->tell_failure(error);  // the others wait there until rank 0 has saved what there is
    if (heard ? speaks(*comm) : comm->first()) tell(error);
    std::fflush(stdout);
    abandon_ranks(kError);
  };
  try {
    status = body(*comm);
    status = std::stoi(comm->broadcast(std::to_string(status)));
  } catch (const Error& error) {
    end(error);
  } catch (const std::bad_alloc&) {
    end(Error("out of memory", fmt::format("rank {}", comm->rank()), "use fewer threads (-j)"));
  } catch (const std::exception& error) {
    end(Error(error.what(), fmt::format("rank {}", comm->rank()), ""));
  }
  std::fflush(stdout);
  return status;
}

int on_equal_ranks(const std::function<int(Comm*)>& body) {
  return on_ranks([&](Comm& comm) {
    const std::string own = fmt::format("{} on {}", FUNGI_VERSION, to_string(best_isa()));
    const std::vector<std::string> all = comm.gather(own);
    for (size_t r = 1; r < all.size(); ++r)
      if (all[r] != own)
        fail(fmt::format("fungi {} computes there, and {} at rank 0: results would not be those of "
                         "one machine",
                         all[r], own),
             fmt::format("rank {} on {}", r, comm.host(r)),
             "FUNGI_ISA makes all ranks compute alike");
    return body(comm.alone() ? nullptr : &comm);
  });
}

void require_alone(const std::string& verb) {
  if (!started_as_rank()) return;
  for (const char* shared : {"extract", "pca", "knn", "linear", "kmeans", "retrieve", "cka"})
    if (verb == shared) return;
  fail(fmt::format("'fungi {}' is for one process, and several were started", verb), "mpirun",
       "start it without mpirun");
}

}  // namespace fungi::app
