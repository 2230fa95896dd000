// SPDX-License-Identifier: Apache-2.0
// Milliseconds of processor time per image on one thread, from a JPEG to views of 224 pixels:
// input_bench FILE.jpg [rounds]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/input/image.h"
#include "fungi/view/view.h"

namespace {

double cpu_ms() {  // of this thread, so that a busy machine does not show
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

double best_ms(int rounds, const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = cpu_ms();
    work();
    best = std::min(best, cpu_ms() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace fungi;
  if (argc < 2) fail("expected the name of a JPEG file", "input_bench");
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  const auto bytes = read_file_bytes(argv[1]);
  const Image image = decode_image(bytes, argv[1]);
  fmt::print("{} x {} pixels, best of {}\n", image.width, image.height, rounds);
  fmt::print("{:12} {:8.3f} ms\n", "decode",
             best_ms(rounds, [&] { decode_image(bytes, argv[1]); }));
  const std::pair<const char*, ViewPlan> plans[] = {
      {"evaluation", WholeImage{}}, {"crops", ImageCrops{}}, {"patches", ImagePatches{}}};
  for (const auto& [name, plan] : plans) {
    ImageViews views(plan, {});
    std::vector<float> out(views.view_floats());
    const double ms = best_ms(rounds, [&] {
      views.open(image, 1);
      for (size_t i = 0; i < views.count(); ++i) views.write(i, out);
    });
    fmt::print("{:12} {:8.3f} ms  ({} views, {:.3f} ms each)\n", name, ms, views.count(),
               ms / double(views.count()));
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
