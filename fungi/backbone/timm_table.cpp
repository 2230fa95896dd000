// SPDX-License-Identifier: Apache-2.0
// Made by tools/make_timm_architectures.py from timm 1.0.31: do not edit.
#include "fungi/backbone/timm_architectures.h"

namespace fungi {

// clang-format off
std::span<const TimmArchitecture> timm_architectures() {
  using enum kernel::Activation;
  static constexpr TimmArchitecture all[] = {
      {64, 2, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " test_vit "},
      {64, 2, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " test_vit2 "},
      {96, 3, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " test_vit4 "},
      {192, 3, gelu, Pooling::attention, 1e-05f, false, 8, 0,
       {10000, 24, 1, true, false},
       " vit_pe_core_tiny_patch16_384 "},
      {192, 3, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " deit_tiny_distilled_patch16_224 deit_tiny_patch16_224 vit_tiny_patch16_224 "
       "vit_tiny_patch16_224_in21k vit_tiny_patch16_384 "},
      {192, 3, gelu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_tiny_patch16_dinov3_qkvb "},
      {192, 3, gelu, Pooling::mean_patches, 1e-05f, true, 0, 0,
       {10000, 32, 1, true, false},
       " vit_pe_spatial_tiny_patch16_512 "},
      {192, 3, silu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {10000, 16, 0, false, false},
       " eva02_tiny_patch14_224 eva02_tiny_patch14_336 "},
      {256, 4, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_xsmall_patch16_clip_224 "},
      {256, 4, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_wee_patch16_reg1_gap_256 "},
      {320, 5, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_little_patch16_reg1_gap_256 vit_little_patch16_reg4_gap_256 "},
      {384, 6, gelu, Pooling::attention, 1e-05f, false, 8, 0,
       {10000, 24, 1, true, false},
       " vit_pe_core_small_patch16_384 "},
      {384, 6, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " deit3_small_patch16_224 deit3_small_patch16_224_in21ft1k deit3_small_patch16_384 "
       "deit3_small_patch16_384_in21ft1k deit_small_distilled_patch16_224 deit_small_patch16_224 "
       "flexivit_small vit_small_patch14_dinov2 vit_small_patch14_reg4_dinov2 "
       "vit_small_patch16_224 vit_small_patch16_224_dino vit_small_patch16_224_in21k "
       "vit_small_patch16_36x1_224 vit_small_patch16_384 vit_small_patch32_224 "
       "vit_small_patch32_224_in21k vit_small_patch32_384 vit_small_patch8_224 "
       "vit_small_patch8_224_dino "},
      {384, 6, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {100, 0, 0, true, false},
       " vit_small_patch16_rope_ape_224 "},
      {384, 6, gelu, Pooling::first, 1e-06f, false, 0, 224,
       {100, 0, 0, true, false},
       " vit_small_patch16_rope_224 "},
      {384, 6, gelu, Pooling::first, 1e-05f, false, 0, 512,
       {100, 0, 0, false, true},
       " vit_small_patch16_lingbot "},
      {384, 6, gelu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_small_patch16_dinov3 vit_small_patch16_dinov3_qkvb "},
      {384, 6, gelu, Pooling::mean_patches, 1e-05f, true, 0, 0,
       {10000, 32, 1, true, false},
       " vit_pe_spatial_small_patch16_512 "},
      {384, 6, silu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {10000, 16, 0, false, false},
       " eva02_small_patch14_224 eva02_small_patch14_336 "},
      {384, 6, silu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_small_plus_patch16_dinov3 vit_small_plus_patch16_dinov3_qkvb "},
      {512, 8, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " deit3_medium_patch16_224 deit3_medium_patch16_224_in21ft1k "},
      {512, 8, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_medium_patch16_clip_224 vit_medium_patch32_clip_224 "},
      {512, 8, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_medium_patch16_gap_240 vit_medium_patch16_gap_256 vit_medium_patch16_gap_384 "
       "vit_medium_patch16_reg1_gap_256 vit_medium_patch16_reg4_gap_256 "
       "vit_mediumd_patch16_reg4_gap_256 vit_mediumd_patch16_reg4_gap_384 "},
      {512, 8, gelu, Pooling::mean_patches, 1e-06f, false, 0, 256,
       {10000, 16, 0, false, false},
       " vit_medium_patch16_rope_reg1_gap_256 vit_mediumd_patch16_rope_reg1_gap_256 "},
      {640, 10, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_betwixt_patch32_clip_224 "},
      {640, 10, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_betwixt_patch16_gap_256 vit_betwixt_patch16_reg1_gap_256 "
       "vit_betwixt_patch16_reg4_gap_256 vit_betwixt_patch16_reg4_gap_384 "},
      {640, 10, gelu, Pooling::mean_patches, 1e-06f, false, 0, 256,
       {10000, 16, 0, false, false},
       " vit_betwixt_patch16_rope_reg4_gap_256 "},
      {768, 12, gelu, Pooling::attention, 1e-06f, false, 12, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_siglip_224 vit_base_patch16_siglip_256 vit_base_patch16_siglip_384 "
       "vit_base_patch16_siglip_512 "},
      {768, 12, gelu, Pooling::attention, 1e-05f, false, 8, 0,
       {10000, 14, 1, true, false},
       " vit_pe_core_base_patch16_224 "},
      {768, 12, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " deit3_base_patch16_224 deit3_base_patch16_224_in21ft1k deit3_base_patch16_384 "
       "deit3_base_patch16_384_in21ft1k deit_base_distilled_patch16_224 "
       "deit_base_distilled_patch16_384 deit_base_patch16_224 deit_base_patch16_384 flexivit_base "
       "vit_base_patch14_dinov2 vit_base_patch14_reg1_tipsv2 vit_base_patch14_reg4_dinov2 "
       "vit_base_patch16_224 vit_base_patch16_224_dino vit_base_patch16_224_in21k "
       "vit_base_patch16_224_miil vit_base_patch16_224_miil_in21k vit_base_patch16_224_sam "
       "vit_base_patch16_384 vit_base_patch32_224 vit_base_patch32_224_in21k "
       "vit_base_patch32_224_sam vit_base_patch32_384 vit_base_patch8_224 "
       "vit_base_patch8_224_dino vit_base_patch8_224_in21k "},
      {768, 12, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {100, 0, 0, true, false},
       " vit_base_patch16_rope_ape_224 "},
      {768, 12, gelu, Pooling::first, 1e-06f, false, 0, 224,
       {100, 0, 0, true, false},
       " vit_base_patch16_rope_224 "},
      {768, 12, gelu, Pooling::first, 1e-06f, true, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_radio_v3 "},
      {768, 12, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_clip_224 vit_base_patch16_clip_384 vit_base_patch32_224_clip_laion2b "
       "vit_base_patch32_clip_224 vit_base_patch32_clip_256 vit_base_patch32_clip_384 "
       "vit_base_patch32_clip_448 "},
      {768, 12, gelu, Pooling::first, 1e-05f, false, 0, 512,
       {100, 0, 0, false, true},
       " vit_base_patch16_lingbot "},
      {768, 12, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_reg4_gap_256 vit_base_patch16_siglip_gap_224 "
       "vit_base_patch16_siglip_gap_256 vit_base_patch16_siglip_gap_384 "
       "vit_base_patch16_siglip_gap_512 "},
      {768, 12, gelu, Pooling::mean_patches, 1e-06f, false, 0, 256,
       {10000, 16, 0, false, false},
       " vit_base_patch16_rope_reg1_gap_256 "},
      {768, 12, gelu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_base_patch16_dinov3 vit_base_patch16_dinov3_qkvb "},
      {768, 12, gelu, Pooling::mean_patches, 1e-05f, true, 0, 0,
       {10000, 32, 1, true, false},
       " vit_pe_spatial_base_patch16_512 "},
      {768, 12, gelu_tanh, Pooling::attention, 1e-06f, false, 12, 0,
       {0, 0, 0, false, false},
       " vit_base_patch32_siglip_256 "},
      {768, 12, gelu_tanh, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch32_siglip_gap_256 "},
      {768, 12, quick_gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_clip_quickgelu_224 vit_base_patch32_clip_quickgelu_224 "},
      {768, 12, silu, Pooling::first, 1e-06f, false, 0, 0,
       {10000, 16, 0, false, false},
       " eva02_base_patch16_clip_224 "},
      {768, 12, silu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {10000, 16, 0, false, false},
       " eva02_base_patch14_224 eva02_base_patch14_448 "},
      {768, 16, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_gap_224 "},
      {832, 13, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_so150m2_patch16_reg1_gap_256 vit_so150m2_patch16_reg1_gap_384 "
       "vit_so150m2_patch16_reg1_gap_448 "},
      {896, 14, gelu, Pooling::attention, 1e-06f, false, 14, 0,
       {0, 0, 0, false, false},
       " vit_so150m_patch16_reg4_map_256 "},
      {896, 14, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_plus_240 vit_base_patch32_plus_256 "},
      {896, 14, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_base_patch16_plus_clip_240 "},
      {896, 14, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_so150m_patch16_reg4_gap_256 vit_so150m_patch16_reg4_gap_384 "},
      {1024, 8, silu, Pooling::mean_patches, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " aimv2_large_patch14_224 aimv2_large_patch14_336 aimv2_large_patch14_448 "},
      {1024, 16, gelu, Pooling::attention, 1e-06f, false, 16, 0,
       {0, 0, 0, false, false},
       " vit_large_patch16_siglip_256 vit_large_patch16_siglip_384 "},
      {1024, 16, gelu, Pooling::attention, 1e-05f, false, 8, 0,
       {10000, 24, 1, true, false},
       " vit_pe_core_large_patch14_336 "},
      {1024, 16, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " deit3_large_patch16_224 deit3_large_patch16_224_in21ft1k deit3_large_patch16_384 "
       "deit3_large_patch16_384_in21ft1k flexivit_large vit_large_patch14_224 "
       "vit_large_patch14_dinov2 vit_large_patch14_reg1_tipsv2 vit_large_patch14_reg4_dinov2 "
       "vit_large_patch16_224 vit_large_patch16_224_in21k vit_large_patch16_384 "
       "vit_large_patch32_224 vit_large_patch32_224_in21k vit_large_patch32_384 "},
      {1024, 16, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {100, 0, 0, true, false},
       " vit_large_patch16_rope_ape_224 "},
      {1024, 16, gelu, Pooling::first, 1e-06f, false, 0, 224,
       {100, 0, 0, true, false},
       " vit_large_patch16_rope_224 "},
      {1024, 16, gelu, Pooling::first, 1e-06f, true, 0, 0,
       {0, 0, 0, false, false},
       " vit_intern300m_patch14_448 vit_large_patch16_radio_v3 "},
      {1024, 16, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_large_patch14_224_clip_laion2b vit_large_patch14_clip_224 vit_large_patch14_clip_336 "},
      {1024, 16, gelu, Pooling::first, 1e-05f, false, 0, 512,
       {100, 0, 0, false, true},
       " vit_large_patch16_lingbot "},
      {1024, 16, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " eva_large_patch14_196 eva_large_patch14_336 vit_large_patch16_siglip_gap_256 "
       "vit_large_patch16_siglip_gap_384 "},
      {1024, 16, gelu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_large_patch16_dinov3 vit_large_patch16_dinov3_qkvb "},
      {1024, 16, gelu, Pooling::mean_patches, 1e-05f, true, 0, 0,
       {10000, 32, 1, true, false},
       " vit_pe_lang_large_patch14_448 vit_pe_spatial_large_patch14_448 "},
      {1024, 16, gelu_tanh, Pooling::attention, 1e-06f, false, 16, 0,
       {0, 0, 0, false, false},
       " vit_large_patch16_siglip_512 "},
      {1024, 16, gelu_tanh, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_large_patch16_siglip_gap_512 "},
      {1024, 16, quick_gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_large_patch14_clip_quickgelu_224 vit_large_patch14_clip_quickgelu_336 "},
      {1024, 16, silu, Pooling::first, 1e-06f, false, 0, 0,
       {10000, 16, 0, false, false},
       " eva02_large_patch14_clip_224 eva02_large_patch14_clip_336 "},
      {1024, 16, silu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {10000, 16, 0, false, false},
       " eva02_large_patch14_224 eva02_large_patch14_448 "},
      {1152, 16, gelu, Pooling::attention, 1e-06f, false, 16, 0,
       {0, 0, 0, false, false},
       " vit_so400m_patch14_siglip_224 vit_so400m_patch14_siglip_378 vit_so400m_patch14_siglip_384 "},
      {1152, 16, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_so400m_patch14_reg1_tipsv2 "},
      {1152, 16, gelu, Pooling::first, 1e-06f, true, 0, 0,
       {0, 0, 0, false, false},
       " vit_so400m_patch16_radio_v4 "},
      {1152, 16, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_so400m_patch14_siglip_gap_224 vit_so400m_patch14_siglip_gap_378 "
       "vit_so400m_patch14_siglip_gap_384 vit_so400m_patch14_siglip_gap_448 "
       "vit_so400m_patch14_siglip_gap_896 "},
      {1152, 16, gelu_tanh, Pooling::attention, 1e-06f, false, 16, 0,
       {0, 0, 0, false, false},
       " vit_so400m_patch16_siglip_256 vit_so400m_patch16_siglip_384 vit_so400m_patch16_siglip_512 "},
      {1152, 16, gelu_tanh, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_so400m_patch16_siglip_gap_256 vit_so400m_patch16_siglip_gap_384 "
       "vit_so400m_patch16_siglip_gap_512 "},
      {1280, 16, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " deit3_huge_patch14_224 deit3_huge_patch14_224_in21ft1k vit_huge_patch14_224 "
       "vit_huge_patch14_224_in21k "},
      {1280, 16, gelu, Pooling::first, 1e-06f, true, 0, 0,
       {0, 0, 0, false, false},
       " vit_huge_patch16_radio_v3 vit_huge_patch16_radio_v4 "},
      {1280, 16, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_huge_patch14_224_clip_laion2b vit_huge_patch14_clip_224 vit_huge_patch14_clip_336 "
       "vit_huge_patch14_clip_378 "},
      {1280, 16, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_huge_patch14_gap_224 vit_huge_patch16_gap_448 "},
      {1280, 16, quick_gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_huge_patch14_clip_quickgelu_224 vit_huge_patch14_clip_quickgelu_378 "},
      {1280, 20, silu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_huge_plus_patch16_dinov3 vit_huge_plus_patch16_dinov3_qkvb "},
      {1408, 16, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " eva_giant_patch14_clip_224 vit_giant_patch14_224 "},
      {1408, 16, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_giant_patch14_224_clip_laion2b vit_giant_patch14_clip_224 "},
      {1408, 16, gelu, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " eva_giant_patch14_224 eva_giant_patch14_336 eva_giant_patch14_560 "
       "vit_giant_patch16_gap_224 "},
      {1536, 12, silu, Pooling::mean_patches, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " aimv2_huge_patch14_224 aimv2_huge_patch14_336 aimv2_huge_patch14_448 "},
      {1536, 16, gelu, Pooling::attention, 1e-05f, false, 8, 0,
       {10000, 32, 0, true, false},
       " vit_pe_core_gigantic_patch14_448 "},
      {1536, 16, gelu, Pooling::mean_patches, 1e-05f, true, 0, 0,
       {10000, 32, 0, true, false},
       " vit_pe_lang_gigantic_patch14_448 vit_pe_spatial_gigantic_patch14_448 "},
      {1536, 16, gelu_tanh, Pooling::attention, 1e-06f, false, 16, 0,
       {0, 0, 0, false, false},
       " vit_giantopt_patch16_siglip_256 vit_giantopt_patch16_siglip_384 "},
      {1536, 16, gelu_tanh, Pooling::mean_patches, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_giantopt_patch16_siglip_gap_256 vit_giantopt_patch16_siglip_gap_384 "},
      {1536, 24, gelu, Pooling::first, 1e-06f, true, 0, 0,
       {0, 0, 0, false, false},
       " vit_giant_patch16_radio_v3 "},
      {1536, 24, silu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_giant_patch14_dinov2 vit_giant_patch14_reg1_tipsv2 vit_giant_patch14_reg4_dinov2 "},
      {1536, 24, silu, Pooling::first, 1e-05f, false, 0, 512,
       {100, 0, 0, false, true},
       " vit_giant_patch16_lingbot "},
      {1664, 16, gelu, Pooling::first, 1e-06f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_gigantic_patch14_224 "},
      {1664, 16, gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_gigantic_patch14_clip_224 vit_gigantic_patch14_clip_378 "},
      {1664, 16, quick_gelu, Pooling::first, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " vit_gigantic_patch14_clip_quickgelu_224 "},
      {2048, 16, silu, Pooling::mean_patches, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " aimv2_1b_patch14_224 aimv2_1b_patch14_336 aimv2_1b_patch14_448 "},
      {3072, 24, silu, Pooling::mean_patches, 1e-05f, false, 0, 0,
       {0, 0, 0, false, false},
       " aimv2_3b_patch14_224 aimv2_3b_patch14_336 aimv2_3b_patch14_448 "},
      {4096, 32, silu, Pooling::mean_patches, 1e-05f, false, 0, 256,
       {100, 0, 0, false, true},
       " vit_7b_patch16_dinov3 "},
  };
  return all;
}

std::string_view other_timm_architectures() {
  return " beit3_base_patch16_224 beit3_giant_patch14_224 beit3_giant_patch14_336 "
         "beit3_large_patch16_224 beit_base_patch16_224 beit_base_patch16_384 "
         "beit_large_patch16_224 beit_large_patch16_384 beit_large_patch16_512 "
         "beitv2_base_patch16_224 beitv2_large_patch16_224 cait_m36_384 cait_m48_448 cait_s24_224 "
         "cait_s24_384 cait_s36_384 cait_xs24_384 cait_xxs24_224 cait_xxs24_384 cait_xxs36_224 "
         "cait_xxs36_384 deepseek_vit_412m_enc eva02_enormous_patch14_clip_224 hiera_base_224 "
         "hiera_base_abswin_256 hiera_base_plus_224 hiera_huge_224 hiera_large_224 "
         "hiera_small_224 hiera_small_abswin_256 hiera_tiny_224 qwen3_vit_306m_enc "
         "qwen3_vit_416m_enc qwen3_vit_88m_enc samvit_base_patch16 samvit_base_patch16_224 "
         "samvit_huge_patch16 samvit_large_patch16 test_vit3 test_vit_relpos "
         "vit_base_patch16_rope_mixed_224 vit_base_patch16_rope_mixed_ape_224 "
         "vit_base_patch16_rpn_224 vit_base_r26_s32_224 vit_base_r50_s16_224 "
         "vit_base_r50_s16_224_in21k vit_base_r50_s16_384 vit_base_resnet26d_224 "
         "vit_base_resnet50_224_in21k vit_base_resnet50_384 vit_base_resnet50d_224 "
         "vit_dlittle_patch16_reg1_gap_256 vit_dwee_patch16_reg1_gap_256 "
         "vit_large_patch16_rope_mixed_224 vit_large_patch16_rope_mixed_ape_224 "
         "vit_large_r50_s32_224 vit_large_r50_s32_224_in21k vit_large_r50_s32_384 "
         "vit_relpos_base_patch16_224 vit_relpos_base_patch16_cls_224 "
         "vit_relpos_base_patch16_clsgap_224 vit_relpos_base_patch16_plus_240 "
         "vit_relpos_base_patch16_rpn_224 vit_relpos_base_patch32_plus_rpn_256 "
         "vit_relpos_medium_patch16_224 vit_relpos_medium_patch16_cls_224 "
         "vit_relpos_medium_patch16_rpn_224 vit_relpos_small_patch16_224 "
         "vit_relpos_small_patch16_rpn_224 vit_small_patch16_rope_mixed_224 "
         "vit_small_patch16_rope_mixed_ape_224 vit_small_r26_s32_224 vit_small_r26_s32_224_in21k "
         "vit_small_r26_s32_384 vit_small_resnet26d_224 vit_small_resnet50d_s16_224 "
         "vit_srelpos_medium_patch16_224 vit_srelpos_small_patch16_224 vit_tiny_r_s16_p8_224 "
         "vit_tiny_r_s16_p8_224_in21k vit_tiny_r_s16_p8_384 ";
}
// clang-format on

}  // namespace fungi
