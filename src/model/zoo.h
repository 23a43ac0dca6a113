/* SPDX-License-Identifier: Apache-2.0 */
/* zoo.h - inside model/: the networks, one function each (zoo_*.c). */
#ifndef MODEL_ZOO_H
#define MODEL_ZOO_H

#include "model/graph_build.h"

void zoo_alexnet(gb_graph *b);
void zoo_vgg19(gb_graph *b);
void zoo_resnet50(gb_graph *b);
void zoo_inception(gb_graph *b);     /* 299x299, auxiliary classifier */
void zoo_inception_224(gb_graph *b); /* without it */
void zoo_unet3d(gb_graph *b);
void zoo_retinanet(gb_graph *b);
void zoo_sd_unet(gb_graph *b);
void zoo_sd_v2(gb_graph *b);
void zoo_dlrm(gb_graph *b);
void zoo_dlrm_of(gb_graph *b, unsigned tables, uint64_t rows); /* up to 32 */
void zoo_dlrm_dcnv2(gb_graph *b);

/* conv, batch norm, relu: parts of a path of their own. */
gb_value zoo_conv_norm_relu(gb_graph *b, const char *const names[3], gb_value x,
                            uint32_t out, gb_window w);
/* The last layer's loss against one class per sample. */
void zoo_class_loss(gb_graph *b, gb_value x);

#endif
