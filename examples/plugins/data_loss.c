/* Content-dependent loss: each frame with given bytes at a given offset is lost
 * with probability p.
 *
 *     cc -std=c99 -O2 -shared -fPIC -I include -o data_loss.so examples/plugins/data_loss.c
 *     longwire simulate in.pcap out.pcap \
 *         --loss plugin:file=data_loss.so,offset=23,bytes=11,p=50%
 *
 * Offset 23 is the protocol field of an untagged IPv4 packet, and hexadecimal 11
 * is UDP: half of all UDP packets are lost.
 */
#include <stdlib.h>
#include <string.h>

#include "longwire_plugin.h"

#define BYTES_MAX 64

struct state {
    const struct longwire_host *host;
    uint64_t offset;
    double p;
    size_t count;
    uint8_t wanted[BYTES_MAX];
};

/* Returns the value of a hexadecimal digit, or -1. */
static int digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Parses hexadecimal text such as "0a1b"; returns the number of bytes, or 0 if
 * it is invalid. */
static size_t read_bytes(const char *text, uint8_t *bytes)
{
    size_t count = 0;
    for (; text[0]; text += 2, count++) {
        int high = digit(text[0]);
        int low = high < 0 ? -1 : digit(text[1]);
        if (low < 0 || count == BYTES_MAX)
            return 0;
        bytes[count] = (uint8_t)(high << 4 | low);
    }
    return count;
}

static int create(const struct longwire_host *host,
                  const struct longwire_parameters *parameters,
                  struct longwire_hints *hints, void **out)
{
    struct state fresh = {host, 0, 1.0, 0, {0}};
    struct state *state;
    (void)hints;
    if (host->require(parameters, "bytes") || host->count(parameters, "offset", &fresh.offset) ||
        host->probability(parameters, "p", &fresh.p))
        return LONGWIRE_ERROR;
    fresh.count = read_bytes(host->text(parameters, "bytes"), fresh.wanted);
    if (fresh.count == 0)
        return host->fail(host, "bytes: write 1 to 64 bytes in hexadecimal, such as 0a1b");
    state = malloc(sizeof *state);
    if (!state)
        return host->fail(host, "no memory");
    *state = fresh;
    *out = state;
    return LONGWIRE_OK;
}

static int matches(const struct state *state, const struct longwire_packet *packet)
{
    uint64_t end = state->offset + state->count;
    return end >= state->count && end <= packet->bytes_count &&
           memcmp(packet->bytes + state->offset, state->wanted, state->count) == 0;
}

static int lose(void *opaque, struct longwire_random *random,
                const struct longwire_packet *packets, size_t count, uint8_t *fates)
{
    const struct state *state = opaque;
    for (size_t i = 0; i < count; i++) {
        int lost = matches(state, &packets[i]) && state->host->chance(random, state->p);
        fates[i] = lost ? LONGWIRE_LOSE_CONTENT : LONGWIRE_DELIVER;
    }
    return LONGWIRE_OK;
}

static const struct longwire_plugin plugin = {
    .abi = LONGWIRE_PLUGIN_ABI,
    .struct_size = sizeof plugin,
    .name = "data_loss",
    .create = create,
    .destroy = free,
    .lose = lose,
};

LONGWIRE_EXPORT const struct longwire_plugin *longwire_plugin(void)
{
    return &plugin;
}
