package longwire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longwire/longwire/clients/go/api"
)

// Report is the report of a run: ports, links, machine pauses.
type Report struct {
	api.Report
	Links []DirectionReport `json:"links"`
}

// DirectionReport has the counters of one direction, link.up or link.down.
type DirectionReport struct {
	Name string `json:"name"`
	api.Totals
}

// Require returns a [FidelityError] unless all conditions hold. The expression is as for
// --require: "artifacts-lost=0,lateness.p99<1ms,up.drops<1%".
func (r *Report) Require(expression string) error {
	rows, err := r.rows()
	if err != nil {
		return err
	}
	var missed []string
	for clause := range strings.SplitSeq(expression, ",") {
		sentences, err := judge(rows, strings.TrimSpace(clause))
		if err != nil {
			return err
		}
		missed = append(missed, sentences...)
	}
	if len(missed) > 0 {
		return &FidelityError{strings.Join(missed, "; ")}
	}
	return nil
}

// row has the measures of a port, a direction or the run, by their names in the JSON report.
type row map[string]any

func (r *Report) rows() ([]row, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var report struct {
		Pauses, Stops any
		Ports, Links  []row
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	run := row{"name": "the run", "pauses": report.Pauses, "stops": report.Stops}
	return slices.Concat([]row{run}, report.Ports, report.Links), nil
}

var (
	clausePattern = regexp.MustCompile(`^([^<>=\s]+)\s*(<=|>=|<|>|=)\s*(\d+(?:\.\d+)?)\s*([a-z]*|%)$`)
	timePattern   = regexp.MustCompile(`(^|\.)(lateness(-own)?|pauses|stops)\.`)
)

// units maps time units to nanoseconds.
var units = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}

// excused are artifacts caused by machine pauses and by the start.
var excused = []string{"late_paused", "late_start"}

// lost are artifacts that count frames lost by the emulator.
var lost = strings.Fields("memory refused ring_full too_long no_carrier send_failed unusable")

// judge returns a message for each row that does not meet a condition.
func judge(rows []row, clause string) ([]string, error) {
	match := clausePattern.FindStringSubmatch(clause)
	if match == nil {
		return nil, fmt.Errorf("'%s': write a name, a comparison (< <= = >= >) and a value", clause)
	}
	name, comparison, unit := match[1], match[2], match[4]
	wanted, err := strconv.ParseFloat(match[3], 64)
	if err != nil {
		return nil, err
	}
	isTime := timePattern.MatchString(name) && !strings.HasSuffix(name, ".count")
	factor, known := units[unit]
	if !isTime {
		factor, known = map[string]float64{"": 1, "%": 0.01}[unit]
	}
	if !known {
		return nil, fmt.Errorf("'%s': write a time such as 50us, a count, or a share such as 1%%", clause)
	}
	var sentences []string
	measured := measures(rows, name)
	for _, one := range measured {
		found := one.value
		if unit == "%" {
			found /= one.row.frames()
		}
		if !holds(found, comparison, wanted*factor) {
			sentences = append(sentences, fmt.Sprintf("%s: %v had %v", clause, one.row["name"], one.value))
		}
	}
	if len(measured) == 0 {
		return nil, fmt.Errorf("'%s': '%s' is not in this report", clause, name)
	}
	return sentences, nil
}

func holds(found float64, comparison string, wanted float64) bool {
	switch comparison {
	case "<":
		return found < wanted
	case "<=":
		return found <= wanted
	case ">":
		return found > wanted
	case ">=":
		return found >= wanted
	}
	return found == wanted
}

// measurement is a measure of one row, in nanoseconds or as a count.
type measurement struct {
	row   row
	value float64
}

// measures returns a measure of all rows that have it, or of the row whose name is its prefix.
func measures(rows []row, name string) []measurement {
	var all []measurement
	for _, one := range rows {
		if value, has := one.measure(name); has {
			all = append(all, measurement{one, value})
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, one := range rows {
		full, _ := one["name"].(string)
		for _, prefix := range []string{full, strings.TrimPrefix(full, "link.")} {
			rest, fits := strings.CutPrefix(name, prefix+".")
			if value, has := one.measure(rest); fits && has {
				return []measurement{{one, value}}
			}
		}
	}
	return nil
}

func (r row) measure(name string) (float64, bool) {
	family, part, _ := strings.Cut(name, ".")
	switch family {
	case "lateness":
		return r.number("lateness_us", part, 1e3)
	case "lateness-own":
		return r.number("lateness_own_us", part, 1e3)
	case "pauses", "stops":
		if part == "count" {
			return r.number(family, part, 1)
		}
		return r.number(family, part+"_us", 1e3)
	case "drops", "artifacts":
		if part != "" {
			return r.number(family, part, 1)
		}
		return r.sum(family, func(string) bool { return true })
	case "artifacts-own":
		return r.sum("artifacts", func(kind string) bool { return !slices.Contains(excused, kind) })
	case "artifacts-lost":
		return r.sum("artifacts", func(kind string) bool { return slices.Contains(lost, kind) })
	}
	value, has := r[name].(float64)
	return value, has
}

// number returns a number of an object in the row.
func (r row) number(object, field string, factor float64) (float64, bool) {
	fields, _ := r[object].(map[string]any)
	value, has := fields[field].(float64)
	return value * factor, has
}

func (r row) sum(object string, includes func(kind string) bool) (float64, bool) {
	counts, has := r[object].(map[string]any)
	total := 0.0
	for kind, count := range counts {
		if value, isNumber := count.(float64); isNumber && includes(kind) {
			total += value
		}
	}
	return total, has
}

// frames returns the base of shares in frames; 1 if there are none.
func (r row) frames() float64 {
	in, _ := r["packets_in"].(float64)
	out, _ := r["packets_out"].(float64)
	full, _ := r.number("artifacts", "ring_full", 1)
	long, _ := r.number("artifacts", "too_long", 1)
	return max(max(in, out)+full+long, 1)
}
