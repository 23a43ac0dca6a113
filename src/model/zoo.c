/* SPDX-License-Identifier: Apache-2.0 */
/* zoo.c - built-in networks by name. */
#include "model/zoo.h"

#include "base/name.h"

#define TORCHVISION "; shapes and parameters as in torchvision's models"

#define MLPERF "MLPerf Training's reference, github.com/mlcommons/training "
#define SEEN   "2026-11-22"

/* Sorted by name. */
static const sc_zoo_entry entries[] = {
    {"alexnet",
     "AlexNet of one column, images of 224x224",
     {"Krizhevsky, arXiv 1404.5997" TORCHVISION, SEEN}},
    {"dlrm",
     "DLRM with 8 tables of 1000000 x 64, dot interaction",
     {"Naumov et al., arXiv 1906.00091; sizes of the example of Proteus, arXiv "
      "2306.02267",
      SEEN}},
    {"dlrm-dcnv2",
     "DLRM-DCNv2, Criteo 1TB with several look-ups per feature",
     {"Wang et al., arXiv 2008.13535; sizes of " MLPERF
      "recommendation_v2/torchrec_dlrm",
      SEEN}},
    {"inception-v3",
     "Inception v3 with its auxiliary classifier, images of 299x299",
     {"Szegedy et al., arXiv 1512.00567" TORCHVISION, SEEN}},
    {"inception-v3-224",
     "Inception v3 without its auxiliary classifier, images of 224x224",
     {"Szegedy et al., arXiv 1512.00567; image and classifier of the example "
      "of Proteus, arXiv 2306.02267",
      SEEN}},
    {"resnet50",
     "ResNet-50 v1.5, images of 224x224",
     {"He et al., arXiv 1512.03385; strides in the 3x3 convolutions" TORCHVISION
      ", as " MLPERF "image_classification",
      SEEN}},
    {"retinanet",
     "RetinaNet on ResNeXt-50 32x4d, images of 800x800, 264 classes",
     {"Lin et al., arXiv 1708.02002; sizes and frozen layers of " MLPERF
      "single_stage_detector/ssd",
      SEEN}},
    {"sd-unet",
     "U-Net of Stable Diffusion v2, latents of 64x64, 77 words",
     {"Rombach et al., arXiv 2112.10752; sizes of " MLPERF
      "stable_diffusion/configs; without the frozen text encoder and "
      "autoencoder",
      SEEN}},
    {"sd-v2",
     "Stable Diffusion v2: frozen text encoder and U-Net, latents of 64x64",
     {"Rombach et al., arXiv 2112.10752; sizes of " MLPERF
      "stable_diffusion/configs, text encoder of OpenCLIP ViT-H-14; without "
      "the frozen autoencoder",
      SEEN}},
    {"unet3d",
     "3-D U-Net, volumes of 128x128x128, 3 classes",
     {"Cicek et al., arXiv 1606.06650; sizes of " MLPERF
      "image_segmentation/pytorch",
      SEEN}},
    {"vgg19",
     "VGG-19, images of 224x224",
     {"Simonyan and Zisserman, arXiv 1409.1556" TORCHVISION, SEEN}},
};

#define ALIASES 6

typedef struct maker {
    void (*build)(net_builder *b);
    const char *sample;
    const char *alias[ALIASES]; /* names in any spelling; ends with NULL */
} maker;

static const maker makers[] = {
    {zoo_alexnet, "image", {0}},
    {zoo_dlrm, "sample", {"dlrm-dot", NULL}},
    {zoo_dlrm_dcnv2,
     "sample",
     {"DLRM-DCNv2 (Criteo-1TB multihot)", "dcnv2", "dlrmv2", NULL}},
    {zoo_inception, "image", {"inception", "googlenet-v3", NULL}},
    {zoo_inception_224, "image", {0}},
    {zoo_resnet50, "image", {"ResNet-50 v1.5", "resnet", NULL}},
    {zoo_retinanet,
     "image",
     {"RetinaNet-ResNeXt50", "ssd", "retinanet-resnext50-32x4d", NULL}},
    {zoo_sd_unet,
     "image",
     {"Stable Diffusion v2 (UNet 865M)", "stable-diffusion-unet", NULL}},
    {zoo_sd_v2, "image", {"Stable Diffusion v2", "stable-diffusion", NULL}},
    {zoo_unet3d, "volume", {"3D U-Net", "3d-unet", "unet-3d", NULL}},
    {zoo_vgg19, "image", {"vgg", NULL}},
};

const sc_zoo_entry *sc_zoo_all(uint32_t *n)
{
    *n = SC_COUNT(entries);
    return entries;
}

const sc_zoo_entry *sc_zoo_find(const char *name)
{
    char folded[NAME_FOLDED + 1];
    name_fold(name, folded);
    if (folded[0] == '\0') return NULL;
    for (size_t i = 0; i < SC_COUNT(entries); i++) {
        if (name_is(folded, entries[i].name)) return &entries[i];
        const char *const *alias = makers[i].alias;
        for (; *alias; alias++)
            if (name_is(folded, *alias)) return &entries[i];
    }
    return NULL;
}

sc_status sc_zoo_build(const sc_zoo_entry *z, sc_arena *a, const sc_net **out,
                       sc_err *err)
{
    const maker *m = &makers[z - entries];
    net_builder b;
    build_init(&b, a, z->name, m->sample);
    m->build(&b);
    return build_finish(&b, out, err);
}
