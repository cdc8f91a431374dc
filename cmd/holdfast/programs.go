package main

import (
	"fmt"
	"os"
	"time"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/kind/execjob"
)

// A programsFile is the content of --exec-config: {"programs": {"thumbnail": {"path": "/usr/bin/convert", "args": ["--"], "timeout": "1m"}}}.
type programsFile struct {
	Programs map[string]programLine `json:"programs"`
	Patience time.Duration          `json:"patience,omitempty"`
}

// A programLine is one program that jobs may run.
type programLine struct {
	Path      string         `json:"path"`
	Args      []string       `json:"args,omitempty"`
	Env       []string       `json:"env,omitempty"`
	Dir       string         `json:"dir,omitempty"`
	Timeout   time.Duration  `json:"timeout,omitempty"`
	MaxOutput int            `json:"max_output,omitempty"`
	Verbatim  bool           `json:"verbatim,omitempty"`
	Codes     map[int]string `json:"codes,omitempty"`
	Limits    struct {
		CPU      time.Duration `json:"cpu,omitempty"`
		Memory   int64         `json:"memory,omitempty"`
		Files    int64         `json:"files,omitempty"`
		FileSize int64         `json:"file_size,omitempty"`
	} `json:"limits,omitzero"`
}

// registerPrograms registers the kind exec with the programs of --exec-config, if there is such a file.
func (s *serverProcess) registerPrograms() error {
	name := s.set.Text("exec-config")
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return &usageError{fmt.Errorf("cannot read the list of programs: %w", err)}
	}
	var file programsFile
	if err := api.Unmarshal(text, &file); err != nil {
		return &usageError{fmt.Errorf("%s: %w", name, err)}
	}
	if len(file.Programs) == 0 {
		return &usageError{fmt.Errorf("%s lists no programs: add one, or remove --exec-config", name)}
	}
	cfg := execjob.Config{Programs: make(map[string]execjob.Program, len(file.Programs)), Patience: file.Patience}
	for name, p := range file.Programs {
		cfg.Programs[name] = execjob.Program{
			Path: p.Path, Args: p.Args, Env: p.Env, Dir: p.Dir, Timeout: p.Timeout, MaxOutput: p.MaxOutput, Verbatim: p.Verbatim, Codes: p.Codes,
			Limits: execjob.Limits(p.Limits),
		}
	}
	if err := execjob.Register(s.engine, cfg); err != nil {
		return &usageError{fmt.Errorf("%s: %w", name, err)}
	}
	return nil
}
