package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/holdfastdev/holdfast/bench/measure"
)

// A document is the content of results.json.
type document struct {
	Day      string            `json:"day"`
	Machine  machine           `json:"machine"`
	Quick    bool              `json:"quick"`
	Rounds   int               `json:"rounds"`
	Versions []string          `json:"versions"`
	Servers  map[string]string `json:"servers"`
	Postgres map[string]string `json:"postgres_settings"`
	LeftOut  []string          `json:"left_out"`
	Contests []contestRecord   `json:"contests"`
	Targets  []targetRecord    `json:"targets"`
}

type machine struct {
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Chip   string `json:"architecture"`
	Go     string `json:"go"`
}

type contestRecord struct {
	Name    string        `json:"name"`
	Entries []entryRecord `json:"entries"`
}

type entryRecord struct {
	Name     string             `json:"name"`
	Program  string             `json:"program"`
	Database string             `json:"database"`
	Workload string             `json:"workload"`
	Jobs     int                `json:"jobs"`
	Flags    []string           `json:"flags,omitempty"`
	Filled   string             `json:"filled,omitempty"`
	Median   map[string]float64 `json:"median,omitempty"`
	Runs     []measure.Result   `json:"runs,omitempty"`
	Others   []float64          `json:"cores_used_by_others,omitempty"`
	Failures []string           `json:"failures,omitempty"`
}

type targetRecord struct {
	What    string   `json:"what"`
	Of      string   `json:"of"`
	Against []string `json:"against,omitempty"`
	Wanted  string   `json:"wanted"`
	Value   float64  `json:"value"`
	State   string   `json:"state"`
}

func thisMachine() machine {
	return machine{runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()}
}

// record returns the document of a run.
func (r *benchmark) record() document {
	d := document{
		Day: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine(), Quick: r.quick, Rounds: r.rounds,
		Versions: r.env.builds.versions, Servers: r.env.version, Postgres: settings.Settings, LeftOut: r.env.builds.leftOut,
	}
	for _, c := range r.contests {
		record := contestRecord{Name: c.name}
		for _, e := range c.entries {
			record.Entries = append(record.Entries, e.record())
		}
		d.Contests = append(d.Contests, record)
	}
	for _, v := range r.verdicts {
		d.Targets = append(d.Targets, targetRecord{v.what(), v.mine, v.peers, v.wanted(), v.value, v.state})
	}
	return d
}

var figures = map[string]figure{
	"jobs_per_second": rate, "worker_cpu_us_per_job": worker, "database_cpu_us_per_job": server, "wal_bytes_per_job": wal,
	"mb_above_idle": memory, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99,
}

func (e *entry) record() entryRecord {
	r := entryRecord{e.name, e.program, e.database, e.workload, e.jobs, e.flags, e.filled, map[string]float64{}, e.results, e.others, e.failures}
	for name, of := range figures {
		if m := e.median(of); m != 0 && (e.workload != "pickup" || name[0] == 'p') {
			r.Median[name] = m
		}
	}
	return r
}

// write writes results.json and the charts to a folder.
func (r *benchmark) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r.record(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	where := fmt.Sprintf("%d cores", runtime.NumCPU())
	if r.quick {
		where += ", a quick run"
	}
	return drawAll(r.contests, where, dir)
}

// drawAll writes the charts that have bars.
func drawAll(contests []*contest, where, dir string) error {
	for name, c := range charts(contests, where) {
		if len(c.groups) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c.draw()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// redraw evaluates and draws an earlier results.json.
func redraw(file string, to io.Writer) error {
	var d document
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("%s is not a results.json of this benchmark: %w", file, err)
	}
	contests := plan(d.Quick)
	for _, c := range d.Contests {
		for _, record := range c.Entries {
			if e := find(contests, c.Name, record.Name); e != nil {
				e.jobs, e.results, e.others, e.failures = record.Jobs, record.Runs, record.Others, record.Failures
			}
		}
	}
	fmt.Fprintln(to, otherLoad(contests))
	table(to, contests)
	printTargets(to, judge(contests, targets(d.Quick)))
	where := fmt.Sprintf("%d cores", d.Machine.Cores)
	if d.Quick {
		where += ", a quick run"
	}
	return drawAll(contests, where, filepath.Dir(file))
}
