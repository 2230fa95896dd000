// SPDX-License-Identifier: Apache-2.0
// What a hub calls a model, and what of a stranger's names may become a path here. Internal to the
// library.
#pragma once

#include <string>
#include <string_view>

namespace fungi {

struct HubModelName {
  std::string id;                 // ORG/NAME, or NAME alone as the oldest models have it
  std::string revision = "main";  // a branch, a tag or a commit
};

// ORG/NAME[@REVISION], with or without "hf:" before it. Error on anything that no hub has.
HubModelName parse_model_name(std::string_view text);
bool is_commit(std::string_view revision);  // 40 hexadecimal digits

// ORG--NAME: folders of models stand side by side, here and in the hub's own cache.
std::string folder_name(const std::string& model_id);

// Whether a listed name stays in the folder that it is put into, and is one that people can type.
bool is_safe_file_name(std::string_view name);

std::string url_encoded(std::string_view text, std::string_view kept = "");  // as %XX

}  // namespace fungi
