//! A test plugin in C that starts a thread.

use longwire_testbed::support::{Folder, compile_plugin};

use super::write;

/// A plugin whose library starts a thread on load. Creating a state takes `sleep` seconds.
const THREADED: &str = r#"
#include <pthread.h>
#include <unistd.h>
#include "longwire_plugin.h"

static void *rest(void *unused) { for (;;) pause(); return unused; }

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, rest, 0);
}

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **state)
{
    uint64_t seconds = 0;
    (void)hints;
    if (host->count(parameters, "sleep", &seconds))
        return LONGWIRE_ERROR;
    sleep((unsigned)seconds);
    *state = 0;
    return LONGWIRE_OK;
}

static int lose(void *state, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates)
{
    (void)state; (void)random; (void)packets;
    for (size_t i = 0; i < count; i++)
        fates[i] = LONGWIRE_DELIVER;
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = LONGWIRE_PLUGIN_ABI,
    .struct_size = sizeof plugin,
    .name = "threaded",
    .create = create,
    .lose = lose,
};

LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void) { return &plugin; }
"#;

/// Compiles the plugin to `threaded.so` in a folder; returns the library's path.
pub fn compile_threaded(dir: &Folder) -> String {
    let (source, library) = (dir.file("threaded.c"), dir.file("threaded.so"));
    write(&source, THREADED);
    compile_plugin(&source, &library);
    library
}
