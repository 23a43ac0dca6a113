/* SPDX-License-Identifier: Apache-2.0 */
/* models.h - finds a model of which a file only has the name. */
#ifndef IMPORT_MODELS_H
#define IMPORT_MODELS_H

#include "import/sink.h"

/* Sets the job's model to the catalogue's entry for `name`, the value `v`; if
 * there is none, it warns. No file is opened: of a path only the last part is
 * looked up. */
sc_status import_model(import_sink *to, const char *name,
                       const import_value *v);

#endif
