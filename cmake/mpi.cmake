# SPDX-License-Identifier: Apache-2.0
# 'mpirun -n 8 fungi extract' and evaluations on several machines, through Open MPI. Included after library.cmake.
# A build that began without it looks again: 'make test' installs it, 'make demo' does not.
if(NOT OMPI_FOUND)
  unset(__pkg_config_checked_OMPI CACHE)
endif()
pkg_check_modules(OMPI IMPORTED_TARGET ompi-c)
set(FUNGI_MPI AUTO CACHE STRING "Work on several machines at once through Open MPI: AUTO (where it is installed), ON or OFF")
set(FUNGI_HAVE_MPI ${FUNGI_MPI})
if(FUNGI_MPI STREQUAL AUTO)
  set(FUNGI_HAVE_MPI ${OMPI_FOUND})
  if(FUNGI_LEAN)
    set(FUNGI_HAVE_MPI OFF)
  endif()
endif()
if(FUNGI_HAVE_MPI)
  if(NOT OMPI_FOUND)
    message(FATAL_ERROR "FUNGI_MPI is ON, but pkg-config finds no Open MPI (ompi-c): install mpi-default-dev or configure with -DFUNGI_MPI=OFF")
  endif()
  # Of the headers only one file knows: the command lines of all others stay as they are, for a compiler's cache.
  target_link_libraries(fungi PRIVATE $<LINK_ONLY:PkgConfig::OMPI>)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/comm/mpi.cpp PROPERTIES COMPILE_DEFINITIONS FUNGI_HAVE_MPI
    INCLUDE_DIRECTORIES "${OMPI_INCLUDE_DIRS}")
endif()
