/* SPDX-License-Identifier: Apache-2.0 */
/* zoo.c - networks that are not generated transformers, by name. */
#include "model/zoo.h"

#include "base/name.h"

#include <string.h>

#define TORCHVISION "; shapes and parameters as in torchvision's models"

static const sc_zoo_entry entries[] = {
    {"alexnet",
     "AlexNet, one column, 224x224",
     {"Krizhevsky, arXiv 1404.5997" TORCHVISION, "2026-11-20"}},
    {"resnet50",
     "ResNet-50 v1.5, 224x224",
     {"He et al., arXiv 1512.03385; stride in the 3x3 convolutions, as MLPerf "
      "Training image classification" TORCHVISION,
      "2026-11-20"}},
    {"vgg19",
     "VGG-19, 224x224",
     {"Simonyan and Zisserman, arXiv 1409.1556" TORCHVISION, "2026-11-20"}},
};

typedef struct maker {
    void (*build)(gb_graph *b);
    const char *sample;
    const char *alias[3]; /* as name_fold() leaves them; NULL ends */
} maker;

static const maker makers[] = {
    {zoo_alexnet, "image", {0}},
    {zoo_resnet50, "image", {"resnet50v1.5", "resnet", NULL}},
    {zoo_vgg19, "image", {0}},
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
        for (size_t k = 0; k < 3 && makers[i].alias[k]; k++)
            if (strcmp(folded, makers[i].alias[k]) == 0) return &entries[i];
    }
    return NULL;
}

sc_status sc_zoo_build(const sc_zoo_entry *z, sc_arena *a,
                       const sc_opgraph **out, sc_err *err)
{
    const maker *m = &makers[z - entries];
    gb_graph b;
    gb_init(&b, a, z->name, m->sample);
    m->build(&b);
    return gb_finish(&b, out, err);
}
