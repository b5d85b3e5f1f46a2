/* A plugin whose behaviour the tests control: every hook, and every fault.
 *
 * Compiled with VERSION, SIZE or HIDDEN defined, it is refused when it is
 * loaded. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "longwire_plugin.h"

#ifndef VERSION
#define VERSION LONGWIRE_PLUGIN_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct longwire_plugin)
#endif

struct state {
    const struct longwire_host *host;
    const char *fault;
    char *trace;
    uint64_t after;
    uint64_t calls;
    double real;
};

/* Appends a word to the file that trace= names. */
static void trace(const struct state *state, const char *word)
{
    FILE *file = state->trace ? fopen(state->trace, "a") : NULL;
    if (file) {
        fputs(word, file);
        fclose(file);
    }
}

static char *copy(const char *text)
{
    char *made = text ? malloc(strlen(text) + 1) : NULL;
    return made ? strcpy(made, text) : NULL;
}

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **out)
{
    struct state *state = calloc(1, sizeof *state);
    const char *fault = host->text(parameters, "fault");
    uint64_t ignored = 0;
    if (!state)
        return host->fail(host, "no memory");
    state->host = host;
    state->trace = copy(host->text(parameters, "trace"));
    state->fault = fault ? copy(fault) : "";
    *out = state;
    if (host->count(parameters, "after", &state->after) ||
        host->size(parameters, "size", &ignored) || host->real(parameters, "real", &state->real))
        return LONGWIRE_ERROR;
    if (strcmp(state->fault, "create") == 0)
        return host->fail(host, "this one is made to fail");
    if (strcmp(state->fault, "silent") == 0)
        return LONGWIRE_ERROR;
    if (strcmp(state->fault, "forgotten") == 0)
        host->fail(host, "said, but not returned");
    if (strcmp(state->fault, "hint") == 0)
        hints->delay_mean_ns = -1;
    if (strcmp(state->fault, "below") == 0)
        hints->delay_least_ns = 800;
    if (strcmp(state->fault, "log") == 0)
        for (int i = 0; i < 200; i++)
            host->log(host, "a line of the plugin's");
    trace(state, "create ");
    return LONGWIRE_OK;
}

static void destroy(void *opaque)
{
    struct state *state = opaque;
    trace(state, "destroy ");
    free(state->trace);
    free(state);
}

/* Returns whether this call has this fault. */
static int now(struct state *state, const char *fault)
{
    return state->calls > state->after && strcmp(state->fault, fault) == 0;
}

static void *exit_in_thread(void *unused)
{
    (void)unused;
    exit(0);
}

/* More than any thread's stack. */
static int overflow(volatile char *below)
{
    volatile char frame[4096];
    frame[0] = below ? below[0] : 1;
    return frame[0] ? overflow(frame) + frame[0] : 0;
}

/* Does what hooks must not do: never returns, ends the program, crashes. */
static void misbehave(struct state *state)
{
    volatile int zero = 0;
    pthread_t thread;
    while (now(state, "loop"))
        sleep(1);
    if (now(state, "exit"))
        exit(0);
    if (now(state, "thread") && pthread_create(&thread, NULL, exit_in_thread, NULL) == 0)
        sleep(5);
    if (now(state, "memory"))
        *(volatile int *)(16 + (size_t)zero) = 1;
    if (now(state, "abort"))
        abort();
    if (now(state, "divide"))
        zero = 7 / zero; /* Compilers turn 1 / zero into a comparison. */
    if (now(state, "stack"))
        overflow(NULL);
}

static int begin(struct state *state)
{
    state->calls++;
    trace(state, "call ");
    misbehave(state);
    return now(state, "hook") ? state->host->fail(state->host, "no more of this") : LONGWIRE_OK;
}

static int lose(void *opaque, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates)
{
    struct state *state = opaque;
    if (begin(state))
        return LONGWIRE_ERROR;
    for (size_t i = 0; i < count && !now(state, "unfilled"); i++) {
        /* The first byte of the frame is its fate. */
        fates[i] = packets[i].bytes_count ? packets[i].bytes[0] : LONGWIRE_DELIVER;
        if (now(state, "fate"))
            fates[i] = 7;
        if (now(state, "chance"))
            fates[i] = (uint8_t)state->host->chance(random, state->real);
    }
    return LONGWIRE_OK;
}

/* The delay encodes every argument of the hook, so that a test can check them;
 * with draws, of the stream too. */
static int delay(void *opaque, struct longwire_random *random,
                 const struct longwire_packet *packets, size_t count, int64_t *delays)
{
    struct state *state = opaque;
    const struct longwire_host *host = state->host;
    if (begin(state))
        return LONGWIRE_ERROR;
    for (size_t i = 0; i < count && !now(state, "unfilled"); i++) {
        const struct longwire_packet *p = &packets[i];
        delays[i] = (p->at_ns - p->arrival_ns) * 1000 + p->length + (int64_t)p->queue_packets * 7 +
                    (int64_t)p->queue_bytes * 11 + p->bytes_count * 13;
        if (now(state, "draws"))
            delays[i] = (int64_t)(host->next_u64(random) >> 40) +
                        (int64_t)host->up_to(random, 999) +
                        longwire_nanoseconds(host->uniform(random) * 1e6) +
                        host->chance(random, 0.5) + host->exponential(random, 1000);
        if (now(state, "negative"))
            delays[i] = -5;
        if (now(state, "nan"))
            delays[i] = longwire_nanoseconds(sqrt(-state->real));
        if (now(state, "never"))
            delays[i] = LONGWIRE_NEVER;
        if (now(state, "below"))
            delays[i] = 799;
        if (now(state, "exponential"))
            delays[i] = host->exponential(random, -1);
    }
    return LONGWIRE_OK;
}

static int ready(void *opaque, struct longwire_random *random, int64_t from, int64_t *result)
{
    struct state *state = opaque;
    (void)random;
    if (begin(state))
        return LONGWIRE_ERROR;
    *result = now(state, "early") ? from - 1 : from + 10;
    return LONGWIRE_OK;
}

static int depart(void *opaque, struct longwire_random *random,
                  const struct longwire_packet *packets, size_t count, int64_t *departures)
{
    struct state *state = opaque;
    (void)random;
    if (begin(state))
        return LONGWIRE_ERROR;
    for (size_t i = 0; i < count; i++) {
        int64_t before = i ? departures[i - 1] : 0;
        int64_t from = packets[i].at_ns > before ? packets[i].at_ns : before;
        departures[i] = now(state, "past") ? from - 1 : from + (int64_t)packets[i].wire_bits;
    }
    return LONGWIRE_OK;
}

static int rewrite(void *opaque, struct longwire_random *random,
                   const struct longwire_packet *packets, size_t count, uint8_t *const *bytes)
{
    struct state *state = opaque;
    if (begin(state))
        return LONGWIRE_ERROR;
    for (size_t i = 0; i < count; i++)
        for (uint32_t at = 12; at < packets[i].bytes_count; at++)
            bytes[i][at] ^= (uint8_t)state->host->up_to(random, 255);
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = VERSION,
    .struct_size = SIZE,
    .name = "probe",
    .create = create,
    .destroy = destroy,
    .lose = lose,
    .delay = delay,
    .ready = ready,
    .depart = depart,
    .rewrite = rewrite,
};

#ifndef HIDDEN
LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void)
{
    return &plugin;
}
#else
LONGWIRE_EXPORT const void *another_function(void)
{
    return &plugin;
}
#endif
