# SPDX-License-Identifier: Apache-2.0
# The command line, built as <build>/fungi: app/main.cpp and one file per verb.
find_package(CLI11 REQUIRED)
file(GLOB FUNGI_APP_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/app/*.cpp)
add_executable(fungi-cli ${FUNGI_APP_SOURCES})
set_target_properties(fungi-cli PROPERTIES OUTPUT_NAME fungi RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
)
if(BUILD_SHARED_LIBS)
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "$ORIGIN/.." OUTPUT_VARIABLE FUNGI_RPATH)
  set_target_properties(fungi-cli PROPERTIES INSTALL_RPATH ${FUNGI_RPATH})
endif()
target_compile_definitions(fungi-cli PRIVATE FUNGI_VERSION="${PROJECT_VERSION}")
target_link_libraries(fungi-cli PRIVATE fungi::fungi CLI11::CLI11 fmt::fmt nlohmann_json::nlohmann_json)
