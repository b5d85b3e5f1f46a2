/* A time-division channel: in each period the link may send in one slot only.
 * A frame waits for the slot, even on an idle link, or for the next slot if the
 * rest of the current one is too short for the whole frame.
 *
 *     cc -std=c99 -O2 -shared -fPIC -I include -o tdm.so examples/plugins/tdm.c
 *     longwire exec --rate plugin:file=tdm.so,rate=10mbit,period=10ms,slot=2ms -- ping far
 *
 * Slots begin at offset, offset + period, offset + 2 period, ... after the start
 * of the link. A frame longer than a slot ends the run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "longwire_plugin.h"

struct state {
    const struct longwire_host *host;
    uint64_t rate;
    int64_t period;
    int64_t slot;
    int64_t offset;
};

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **out)
{
    struct state fresh = {host, 0, 0, 0, 0};
    struct state *state;
    if (host->require(parameters, "rate") || host->rate(parameters, "rate", &fresh.rate) ||
        host->require(parameters, "period") || host->time(parameters, "period", &fresh.period) ||
        host->require(parameters, "slot") || host->time(parameters, "slot", &fresh.slot) ||
        host->time(parameters, "offset", &fresh.offset))
        return LONGWIRE_ERROR;
    if (fresh.slot == 0 || fresh.slot > fresh.period)
        return host->fail(host, "slot: must be longer than 0 and at most the period");
    if (fresh.offset >= fresh.period)
        return host->fail(host, "offset: must be shorter than the period");
    hints->rate_mean_bits_per_second =
        (uint64_t)((double)fresh.rate * (double)fresh.slot / (double)fresh.period);
    state = malloc(sizeof *state);
    if (!state)
        return host->fail(host, "no memory");
    *state = fresh;
    *out = state;
    return LONGWIRE_OK;
}

/* Returns the earliest time, not before from, at which at least need is left in
 * a slot. */
static int64_t earliest(const struct state *state, int64_t from, int64_t need)
{
    int64_t since = from - state->offset;
    int64_t into;
    if (since < 0)
        return state->offset;
    into = since % state->period;
    if (into <= state->slot - need)
        return from;
    return from - into + state->period;
}

static int ready(void *opaque, struct longwire_random *random, int64_t from, int64_t *result)
{
    (void)random;
    *result = earliest(opaque, from, 1);
    return LONGWIRE_OK;
}

static int depart(void *opaque, struct longwire_random *random,
                  const struct longwire_packet *packets, size_t count, int64_t *departures)
{
    const struct state *state = opaque;
    int64_t free_at = 0;
    (void)random;
    for (size_t i = 0; i < count; i++) {
        int64_t at = packets[i].at_ns > free_at ? packets[i].at_ns : free_at;
        /* Rounded up to a whole nanosecond. */
        int64_t need =
            (int64_t)((packets[i].wire_bits * 1000000000 + state->rate - 1) / state->rate);
        if (need > state->slot) {
            char message[128];
            snprintf(message, sizeof message,
                     "a frame of %" PRIu32 " bytes takes %" PRId64
                     " ns, longer than a slot of %" PRId64 " ns",
                     packets[i].length, need, state->slot);
            return state->host->fail(state->host, message);
        }
        free_at = earliest(state, at, need) + need;
        departures[i] = free_at;
    }
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = LONGWIRE_PLUGIN_ABI,
    .struct_size = sizeof plugin,
    .name = "tdm",
    .create = create,
    .destroy = free,
    .ready = ready,
    .depart = depart,
};

LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void)
{
    return &plugin;
}
