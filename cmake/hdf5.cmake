# SPDX-License-Identifier: Apache-2.0
# 'fungi export' to HDF5, through the C library's own pkg-config file. Included after library.cmake.
pkg_check_modules(HDF5 IMPORTED_TARGET hdf5)
option(FUNGI_HDF5 "Export features to HDF5" ${HDF5_FOUND})
if(FUNGI_HDF5)
  if(NOT HDF5_FOUND)
    message(FATAL_ERROR "FUNGI_HDF5 is ON, but pkg-config finds no hdf5: install libhdf5-dev or configure with -DFUNGI_HDF5=OFF")
  endif()
  target_compile_definitions(fungi PRIVATE FUNGI_HAVE_HDF5)
  fungi_large_library(PkgConfig::HDF5 FUNGI_HAVE_HDF5 store/export_hdf5.cpp)
endif()
