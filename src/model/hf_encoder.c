/* SPDX-License-Identifier: Apache-2.0 */
/* hf_encoder.c - reads config.json of BERT, T5, BART and ViT. */
#include "model/hf.h"

#include <string.h>

/* Refuses other values of a key, which are not modelled. */
static void only(hf_reader *r, const char *key, double value, const char *what)
{
    const sc_node *n = hf_get(r, r->root, key);
    if (n && hf_number(r, r->root, key, value) != value) {
        hf_unsupported(r, n, what);
    }
}

/* The generator predicts masked tokens; all other files are taken as the
 * discriminator, which is published for use. */
static void electra(hf_reader *r)
{
    static const hf_spelling width[] = {
        {MODEL_EMBED_WIDTH, {"embedding_size"}}};
    const sc_node *names = hf_get(r, r->root, "architectures");
    const sc_node *c = names ? names->child : NULL;
    r->t.embed_width = 128; /* default of the type */
    hf_numbers(r, width, 1, false);
    r->t.replaced = !c || !hf_is_word(c, "ElectraForMaskedLM");
}

/* Token types are a table of two rows, whatever the file states; RoBERTa has
 * one row, DistilBERT none. */
static void bert(hf_reader *r, const hf_type *type)
{
    bool distil = strcmp(type->name, "distilbert") == 0;
    const sc_node *n = hf_get(r, r->root, "position_embedding_type");
    r->t.encoder = true;
    r->t.embed_norm = true;
    if (strcmp(type->name, "electra") == 0) electra(r);
    r->t.dropout = hf_number(r, r->root, "hidden_dropout_prob", 0.1) > 0;
    hf_act(r, r->root, distil ? "activation" : "hidden_act");
    const sc_node *rows = hf_get(r, r->root, "type_vocab_size");
    if (rows && hf_number(r, r->root, rows->key, 2) != 1)
        only(r, rows->key, 2, "other than one or two types of tokens");
    if (hf_bool(r, r->root, "sinusoidal_pos_embds", false))
        hf_unsupported(r, hf_get(r, r->root, "sinusoidal_pos_embds"),
                       "positions by sines");
    if (n && !hf_is(r, n->key, "absolute")) {
        hf_unsupported(r, n, "relative positions");
    }
    if (hf_bool(r, r->root, "is_decoder", false)) {
        hf_unsupported(r, hf_get(r, r->root, "is_decoder"), "a decoder");
    }
}

/* Every third block sees all positions, the others half of `local_attention` on
 * both sides.  The first norm of the first block is missing, but counted. */
static void modern_windows(hf_reader *r)
{
    static const hf_spelling width[] = {{MODEL_WINDOW, {"local_attention"}}};
    double each = hf_number(r, r->root, "global_attn_every_n_layers", 3);
    int64_t n = r->t.layers, every = each >= 1 ? (int64_t)each : 1;
    r->t.window = 128;
    hf_numbers(r, width, 1, false);
    if (hf_get(r, r->root, "layer_types")) {
        hf_windows(r, 0, 0);
        return;
    }
    char *s =
        n > 0 && n <= 100000 ? SC_NEW_N(r->arena, char, (uint64_t)n + 1) : NULL;
    for (int64_t i = 0; s && i < n; i++) s[i] = i % every ? 'W' : 'F';
    if (s) hf_window_letters(r, s);
}

static void modernbert(hf_reader *r)
{
    sc_transformer *t = &r->t;
    const sc_node *head = hf_get(r, r->root, "classifier_activation");
    t->encoder = t->embed_norm = true;
    t->norms = SC_NORMS_BEFORE;
    hf_act(r, r->root, "hidden_activation");
    t->qkv_bias = t->proj_bias = hf_bool(r, r->root, "attention_bias", false);
    t->mlp_bias = hf_bool(r, r->root, "mlp_bias", false);
    t->norm_bias = hf_bool(r, r->root, "norm_bias", false);
    t->head_bias = hf_bool(r, r->root, "decoder_bias", true);
    t->dropout = hf_number(r, r->root, "mlp_dropout", 0) > 0;
    if (hf_bool(r, r->root, "classifier_bias", false))
        hf_unsupported(r, hf_get(r, r->root, "classifier_bias"),
                       "a bias in the first product of the head");
    if (head && !hf_is(r, head->key, "gelu"))
        hf_unsupported(r, head, "this activation in the head");
    modern_windows(r);
}

/* Files that the library saved repeat the activation in two more keys. */
static void t5_act(hf_reader *r, const sc_node *given)
{
    const sc_node *gated = hf_get(r, r->root, "is_gated_act");
    bool is = model_gated(&r->t);
    if (gated && hf_bool(r, r->root, gated->key, is) != is) {
        if (given)
            hf_fail(r, SC_C_CONFLICT, gated->pos, "keep one of them",
                    "%s contradicts %s", gated->key, given->key);
        else
            r->t.act = is ? SC_ACT_GELU : SC_ACT_GEGLU;
    }
    if (given)
        (void)hf_get(r, r->root, "dense_act_fn");
    else
        hf_act(r, r->root, "dense_act_fn");
}

static void t5(hf_reader *r, const hf_type *type)
{
    static const hf_spelling decoder[] = {
        {MODEL_DECODER_LAYERS, {"num_decoder_layers"}}};
    const sc_node *n = hf_get(r, r->root, "feed_forward_proj");
    hf_numbers(r, decoder, 1, false);
    if (!r->t.decoder_layers) r->t.decoder_layers = r->t.layers;
    r->t.relative_each = strcmp(type->name, "umt5") == 0;
    r->t.dropout = hf_number(r, r->root, "dropout_rate", 0.1) > 0;
    if (n && hf_is(r, n->key, "gated-gelu")) {
        r->t.act = SC_ACT_GEGLU;
    } else if (n && hf_is(r, n->key, "gated-silu")) {
        r->t.act = SC_ACT_SWIGLU;
    } else if (n && hf_is(r, n->key, "gelu")) {
        r->t.act = SC_ACT_GELU;
    } else if (n && hf_is(r, n->key, "relu")) {
        r->t.act = SC_ACT_RELU;
    } else if (n) {
        hf_unsupported(r, n, "this activation");
    }
    t5_act(r, n);
}

/* Both stacks have blocks of one size. */
static void same_sizes(hf_reader *r)
{
    static const char *const keys[][2] = {
        {"decoder_ffn_dim", "encoder_ffn_dim"},
        {"decoder_attention_heads", "encoder_attention_heads"},
        {"decoder_vocab_size", "vocab_size"},
    };
    for (size_t i = 0; i < SC_COUNT(keys); i++) {
        double want = hf_number(r, r->root, keys[i][1], 0);
        only(r, keys[i][0], want, "stacks of different sizes");
    }
}

/* Older files repeat in four keys what the code of the type fixes. */
static void bart_facts(hf_reader *r)
{
    const sc_transformer *t = &r->t;

    const struct {
        const char *key;
        bool is;
    } facts[] = {
        {"normalize_before", !model_post_norm(t)},
        {"add_final_layer_norm", !model_post_norm(t)},
        {"normalize_embedding", t->embed_norm},
        {"static_position_embeddings", t->position == SC_POS_NONE},
        {"share_encoder_decoder_embeddings", true},
    };

    for (size_t i = 0; i < SC_COUNT(facts); i++) {
        bool is = facts[i].is;
        if (hf_bool(r, r->root, facts[i].key, is) != is)
            hf_unsupported(r, hf_get(r, r->root, facts[i].key),
                           "such blocks in a model of this type");
    }
}

/* Tables of learned positions start with two unused rows; sines have none. */
static void bart(hf_reader *r)
{
    static const hf_spelling decoder[] = {
        {MODEL_DECODER_LAYERS, {"decoder_layers"}}};
    sc_transformer *t = &r->t;
    hf_numbers(r, decoder, 1, true);
    same_sizes(r);
    hf_act(r, r->root, "activation_function");
    t->dropout = hf_number(r, r->root, "dropout", 0.1) > 0;
    t->embed_norm = t->position == SC_POS_LEARNED;
    if (t->embed_norm && t->max_seq) t->positions = t->max_seq + 2;
    bart_facts(r);
}

/* The file lists class names, or only their number. */
static void classes(hf_reader *r)
{
    static const hf_spelling number[] = {{MODEL_CLASSES, {"num_labels"}}};
    const sc_node *names = hf_get(r, r->root, "id2label");
    hf_numbers(r, number, 1, false);
    if (!r->t.classes && names && names->kind == SC_N_MAP) {
        r->where.at[MODEL_CLASSES] = names->pos;
        for (const sc_node *c = names->child; c; c = c->next) r->t.classes++;
    }
    r->t.vocab = r->t.classes;
    if (r->t.classes || hf_get(r, r->root, "num_labels")) return;
    hf_fail(r, SC_C_MISSING, r->root->pos, "how many classes there are",
            "missing key \"id2label\"");
}

static void vit(hf_reader *r)
{
    static const hf_spelling sizes[] = {{MODEL_IMAGE, {"image_size"}},
                                        {MODEL_PATCH, {"patch_size"}}};
    r->t.image = 224; /* default of the type */
    r->t.patch = 16;
    hf_numbers(r, sizes, SC_COUNT(sizes), false);
    hf_act(r, r->root, "hidden_act");
    only(r, "num_channels", 3, "other than three channels");
    r->t.dropout = hf_number(r, r->root, "hidden_dropout_prob", 0) > 0;
    if (!hf_bool(r, r->root, "qkv_bias", true)) {
        hf_unsupported(r, hf_get(r, r->root, "qkv_bias"),
                       "biases in a part of the block");
    }
    classes(r);
}

void hf_details_encoder(hf_reader *r, const hf_type *type)
{
    switch (type->kind) {
    case HF_BERT: bert(r, type); break;
    case HF_MODERNBERT: modernbert(r); break;
    case HF_T5: t5(r, type); break;
    case HF_BART: bart(r); break;
    default: vit(r); break;
    }
}
