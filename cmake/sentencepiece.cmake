# SPDX-License-Identifier: Apache-2.0
# Tokenizers that come as SentencePiece's own files (spiece.model). Included after library.cmake.
pkg_check_modules(SENTENCEPIECE IMPORTED_TARGET sentencepiece)
option(FUNGI_SENTENCEPIECE "Read SentencePiece's own files" ${SENTENCEPIECE_FOUND})
if(FUNGI_SENTENCEPIECE)
  if(NOT SENTENCEPIECE_FOUND)
    message(FATAL_ERROR "FUNGI_SENTENCEPIECE is ON, but pkg-config finds no sentencepiece: install libsentencepiece-dev or configure with -DFUNGI_SENTENCEPIECE=OFF")
  endif()
  target_link_libraries(fungi PRIVATE PkgConfig::SENTENCEPIECE)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/token/sentencepiece.cpp PROPERTIES COMPILE_DEFINITIONS FUNGI_HAVE_SENTENCEPIECE)
endif()
