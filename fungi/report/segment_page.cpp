// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/segment_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <unordered_map>

#include "fungi/base/base64.h"
#include "fungi/base/error.h"
#include "fungi/input/png_write.h"
#include "fungi/report/html.h"
#include "fungi/report/thumbnail.h"
#include "fungi/segment/patch_colours.h"

namespace fungi {
namespace {

constexpr size_t kSide = 400;  // of a picture on the page

constexpr const char* kStyle = R"css(
main{--veil:.7}.tools{position:sticky;top:0;z-index:1;background:var(--paper);padding:.4rem 0;border-bottom:1px solid var(--line)}
.tools label{margin-left:1rem;font-size:.9rem;color:var(--soft)}input[type=range]{accent-color:var(--accent);vertical-align:middle}
.scenes{display:grid;gap:1.2rem;margin-top:.8rem}.card.scene{display:block;padding:.8rem 1rem 1rem}
.scene h3{font-size:1rem;margin:0 0 .3rem;color:var(--ink)}.scene h3 span{font-weight:400;color:var(--soft)}
.panels{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:.7rem}
.panels figure{margin:0}.panels figcaption{line-height:1.3}.wide-panel{grid-column:span 2}
.layers{position:relative;border-radius:4px;overflow:hidden;background:var(--p) center/100% 100%;aspect-ratio:var(--w)/var(--h)}
.layers img{position:absolute;inset:0;width:100%;height:100%;opacity:var(--veil);image-rendering:pixelated}
.layers.plain img{opacity:1;image-rendering:auto}
.wipe .left{clip-path:inset(0 calc(100% - var(--cut,50%)) 0 0)}.wipe .right{clip-path:inset(0 0 0 var(--cut,50%))}
.wipe::after{content:"";position:absolute;top:0;bottom:0;left:var(--cut,50%);width:2px;background:#fff;box-shadow:0 0 2px #000}
.wide-panel input{width:100%}
.chips{display:flex;flex-wrap:wrap;gap:.2rem .9rem;margin:.2rem 0 .6rem;padding:0;list-style:none;font-size:.85rem}
.chips i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.4em;border:1px solid var(--line);background:var(--c)}
@media (max-width:40rem){.panels{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media print{.tools{display:none}.wide-panel input{display:none}}
)css";

constexpr const char* kScript = R"js(
for (const veil of document.querySelectorAll("[data-veil]"))
  veil.addEventListener("input", () => document.querySelector("main").style.setProperty("--veil", veil.value / 100));
for (const cut of document.querySelectorAll("[data-cut]"))
  cut.addEventListener("input", () => cut.parentElement.querySelector(".wipe").style.setProperty("--cut", cut.value + "%"));
)js";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string signed_points(double share) { return fmt::format("{:+.1f}", 100 * share); }

// What a kind is called where there is little room.
std::string title_of(const std::string& kind) {
  return kind == "fungi" ? "with gradients" : html::escape(kind);
}

std::string data_of(const char* type, const std::vector<uint8_t>& bytes) {
  return fmt::format("data:image/{};base64,{}", type, to_base64(bytes));
}

class Page {
 public:
  Page(const Segmenter& segmenter, const MaskDataset& test, const SegmentationResult& result,
       Pool& pool)
      : segmenter_(segmenter), test_(test), result_(result), pool_(pool) {}

  std::string body(size_t pictures) {
    return headline() + scores() + scenes(pictures) + classes() + settings();
  }

 private:
  size_t last() const { return result_.kinds.size() - 1; }

  std::string headline() const {
    std::string tiles;
    for (size_t kind = 0; kind < result_.kinds.size(); ++kind)
      tiles += fmt::format("<li><strong>{}</strong><span>mIoU, {}</span></li>",
                           percent(result_.scores[kind].miou), title_of(result_.kinds[kind]));
    if (last()) {
      const double change = result_.scores[last()].miou - result_.scores[0].miou;
      tiles += fmt::format(
          "<li><strong class={}>{}</strong><span>points of mIoU from the gradients</span></li>",
          change < 0 ? "down" : "up", signed_points(change));
    }
    const auto& path = segmenter_.features().backbone().path();
    return fmt::format(
        "<h1>Segmentation by neighbours</h1><p>{} test pictures, labelled patch by patch as the {} "
        "nearest of {} remembered patches are; model {}, nothing was trained.</p><ul "
        "class=tiles>{}</ul>",
        result_.ids.size(), segmenter_.options().k, segmenter_.bank(0).rows(),
        html::escape(path.filename().string()), tiles);
  }

  std::string scores() const {
    std::string rows;
    for (size_t kind = 0; kind < result_.kinds.size(); ++kind) {
      const SegmentationScore& s = result_.scores[kind];
      rows += fmt::format(
          "<tr><th scope=row>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}</tr>",
          title_of(result_.kinds[kind]), percent(s.miou), percent(s.present), percent(s.hungarian),
          percent(s.pixel_accuracy),
          segmenter_.bank(kind).is_exact() ? "exact" : fmt::format("{:.3f}", result_.recall[kind]),
          html::bar_cell(s.miou, 0, 1, kind ? "grads" : ""));
    }
    return "<h2>Scores</h2><div class=scroll><table class=wide><thead><tr><th "
           "scope=col>features</th><th scope=col>mIoU</th><th scope=col>present classes</th><th "
           "scope=col>classes matched</th><th scope=col>pixels right</th><th scope=col>recall of "
           "the search</th><td></td></tr></thead><tbody>" +
           rows +
           "</tbody></table></div><p class=note>mIoU: mean over all classes. Present classes: "
           "those "
           "of the test masks. Matched: predicted classes renamed so that the mean is "
           "largest.</p>";
  }

  // Pictures by what the gradients change, those that gain most first; without gradients by score.
  std::vector<std::pair<size_t, const char*>> chosen(size_t count) const {
    std::vector<size_t> order(result_.ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return change(a) > change(b); });
    std::vector<std::pair<size_t, const char*>> out;
    const size_t ends = std::min(count, order.size() / 2 + order.size() % 2);
    for (size_t i = 0; i < ends; ++i)
      if (!last() || change(order[i]) > 0) out.emplace_back(order[i], "gained");
    for (size_t i = 0; i < std::min(count, order.size() - ends); ++i)
      if (const size_t picture = order[order.size() - 1 - i]; !last() || change(picture) < 0)
        out.emplace_back(picture, "lost");
    return out;
  }

  double change(size_t picture) const {
    const std::vector<double>& score = result_.pictures[picture];
    return last() ? score.back() - score.front() : score.front();
  }

  // Of background nothing is seen but the picture.
  std::string mask_picture(const Mask& mask, const std::string& about) const {
    const std::string zero = segmenter_.class_name(0);
    const bool clear = zero == "background" || zero == "other" || zero == "0";
    std::vector<uint8_t> palette;
    for (unsigned number = 0; number < 256; ++number) {
      for (const uint8_t channel : class_colour(uint8_t(number))) palette.push_back(channel);
      palette.push_back(number == 0 && clear ? 0 : 255);
    }
    const auto bytes =
        encode_palette_png(mask.width, mask.height, mask.values.data(), palette.data(), true);
    return fmt::format("<img alt=\"{}\" src=\"{}\"", html::escape(about), data_of("png", bytes));
  }

  static std::string figure(const std::string& inside, const std::string& caption,
                            const char* kind = "") {
    return fmt::format(
        "<figure><div class=\"layers {}\">{}</div><figcaption>{}</figcaption></figure>", kind,
        inside, caption);
  }

  std::string chips(const Mask& truth, const std::vector<Mask>& predicted) const {
    std::set<uint8_t> seen;
    for (const Mask* mask : {&truth, &predicted.front(), &predicted.back()})
      seen.insert(mask->values.begin(), mask->values.end());
    std::string out;
    for (const uint8_t number : seen) {
      const auto colour = class_colour(number);
      const bool none = int(number) == test_.ignore();
      out += fmt::format("<li><i style=\"--c:rgb({} {} {})\"></i>{}</li>", colour[0], colour[1],
                         colour[2],
                         none ? "not counted" : html::escape(segmenter_.class_name(number)));
    }
    return "<ul class=chips>" + out + "</ul>";
  }

  std::string scene(size_t picture, const char* kind, const MaskDataset::Pair& pair,
                    const Segmenter::Labels& labels, const std::vector<PatchColours>& colours) {
    const std::string& id = result_.ids[picture];
    const size_t longer = std::max(pair.image.width, pair.image.height),
                 to = std::min(kSide, longer);
    const size_t w = std::max<size_t>(1, pair.image.width * to / longer),
                 h = std::max<size_t>(1, pair.image.height * to / longer);
    const Mask truth = resize_mask(pair.mask, w, h);
    std::vector<Mask> masks;
    for (const Matrix<float>& shares : labels.shares)
      masks.push_back(segmenter_.mask(shares, w, h));
    std::string panels =
        figure("", "picture") + figure(mask_picture(truth, "true classes of " + id) + ">", "truth");
    for (size_t i = 0; i < masks.size(); ++i)
      panels += figure(
          mask_picture(masks[i], result_.kinds[i] + ", " + id) + ">",
          fmt::format("{}: {}", title_of(result_.kinds[i]), percent(result_.pictures[picture][i])));
    if (masks.size() > 1)
      panels += fmt::format(
          "<figure class=wide-panel><div class=\"layers wipe\">{} class=left>{} "
          "class=right></div><input type=range min=0 max=100 value=50 data-cut class=filter "
          "aria-label=\"from embedding to gradients\"><figcaption>left: embedding; right: with "
          "gradients</figcaption></figure>",
          mask_picture(masks[0], "embedding, left half"),
          mask_picture(masks[1], "with gradients, right half"));
    for (size_t i = 0; i < colours.size(); ++i) {
      const Image seen = colours[i].picture(labels.features[i], segmenter_.features().grid_h(),
                                            segmenter_.features().grid_w(), w, h, pool_);
      panels += figure(
          fmt::format("<img alt=\"features of {}, {}\" src=\"{}\">", html::escape(id),
                      html::escape(result_.kinds[i]), data_of("webp", small_picture(seen, kSide))),
          "features as colours: " + title_of(result_.kinds[i]), "plain");
    }
    return fmt::format(
        "<div class=\"card scene\" data-kind={} style=\"--w:{};--h:{};--p:url({})\"><h3>{} "
        "<span>{}</span></h3>{}<div class=panels>{}</div></div>",
        kind, w, h, data_of("webp", small_picture(pair.image, kSide)), html::escape(id),
        last() ? signed_points(change(picture)) + " points" : percent(change(picture)),
        chips(truth, masks), panels);
  }

  std::string scenes(size_t count) {
    std::unordered_map<std::string, size_t> place;
    for (size_t i = 0; i < test_.size(); ++i) place[test_.id(i)] = i;
    std::vector<PatchColours> colours;
    std::string note;
    try {
      for (size_t kind = 0; kind < result_.kinds.size(); ++kind)
        colours.push_back(PatchColours::fit(segmenter_.bank(kind).features(), pool_));
    } catch (const Error& error) {
      colours.clear();
      note = fmt::format("<p class=note>Features as colours are left out: {}</p>",
                         html::escape(error.message()));
    }
    std::string cards;
    for (const auto& [picture, kind] : chosen(count)) {
      const std::string& id = result_.ids[picture];
      const MaskDataset::Pair pair = test_.pair(place.at(id));
      const auto labels = segmenter_.label(
          1, [&](size_t) { return pair.image; }, std::span(&id, 1), pool_);
      if (!labels[0].failure) cards += scene(picture, kind, pair, labels[0], colours);
    }
    if (cards.empty()) return "";
    std::string buttons;
    for (const auto& [show, word] : {std::pair("all", "all"),
                                     {"gained", last() ? "gained" : "best"},
                                     {"lost", last() ? "lost" : "worst"}})
      buttons += fmt::format("<button type=button data-show={} aria-pressed={}>{}</button> ", show,
                             std::string_view(show) == "all" ? "true" : "false", word);
    return fmt::format(
        "<h2>{}</h2><p class=note>Beside each name the mean IoU over the picture's own "
        "classes.</p>{}<p class=\"tools filter\">{}<label>masks <input type=range min=0 max=100 "
        "value=70 data-veil></label></p><div class=scenes>{}</div>",
        last() ? "Pictures that gain and lose most" : "Best and worst pictures", note, buttons,
        cards);
  }

  std::string classes() const {
    std::vector<size_t> order;
    for (size_t c = 0; c < result_.class_names.size(); ++c)
      if (result_.scores[0].pixels[c]) order.push_back(c);
    const std::vector<double>&before = result_.scores[0].iou, &after = result_.scores[last()].iou;
    const auto gain = [&](size_t c) { return last() ? after[c] - before[c] : before[c]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return gain(a) > gain(b); });
    std::string rows;
    for (const size_t c : order) {
      rows += fmt::format("<tr><th scope=row>{}</th><td>{}</td>{}",
                          html::escape(result_.class_names[c]), percent(before[c]),
                          html::bar_cell(before[c], 0, 1));
      if (last())
        rows += fmt::format("<td>{}</td>{}<td class={}>{}</td>", percent(after[c]),
                            html::bar_cell(after[c], 0, 1, "grads"), gain(c) < 0 ? "down" : "up",
                            signed_points(gain(c)));
      rows += "</tr>";
    }
    return fmt::format(
        "<h2>Classes</h2><div class=scroll><table class=\"wide classes\"><caption>IoU of the {} "
        "classes of the test masks</caption><thead><tr><th scope=col>class</th><th "
        "scope=col>embedding</th><td></td>{}</tr></thead><tbody>{}</tbody></table></div>",
        order.size(),
        last() ? "<th scope=col>with gradients</th><td></td><th scope=col>change</th>" : "", rows);
  }

  static void flatten(const nlohmann::json& value, const std::string& path, std::string& rows) {
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items())
        flatten(inner, path.empty() ? key : path + "." + key, rows);
      return;
    }
    rows += fmt::format("<tr><th scope=row>{}</th><td>{}</td></tr>", html::escape(path),
                        html::escape(value.is_string() ? value.get<std::string>() : value.dump()));
  }

  std::string settings() const {
    std::string rows;
    flatten(nlohmann::json::parse(segmenter_.settings()), "", rows);
    return "<h2>Settings</h2><div class=scroll><table class=settings><tbody>" + rows +
           "</tbody></table></div>";
  }

  const Segmenter& segmenter_;
  const MaskDataset& test_;
  const SegmentationResult& result_;
  Pool& pool_;
};

}  // namespace

std::string make_segment_page(const Segmenter& segmenter, const MaskDataset& test,
                              const SegmentationResult& result, const SegmentPageOptions& options,
                              Pool& pool) {
  FUNGI_ASSERT(result.complete && result.scores.size() == result.kinds.size());
  Page page(segmenter, test, result, pool);
  return html::page("fungi segment", page.body(options.pictures), kStyle, kScript);
}

}  // namespace fungi
