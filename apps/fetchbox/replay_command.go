package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
)

const replayTimeout = 2 * time.Minute

// replayCommand implements `fetchbox replay`: it asks a running fetchbox, through its API.
func replayCommand(ctx context.Context, set *settings, env func(string) string, args []string, out io.Writer) error {
	var request replay.Request
	var text replay.FilterText
	var address string
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the returned error contains it
	flags.StringVar(&text.Sequence, "seq", "", "sequence numbers: 17, or 17-42, or 17- for all from 17 on")
	flags.StringVar(&request.Filter.Code, "code", "", "code of the failure, such as DOWNLOAD_TIMEOUT, or DOWNLOAD_ for all that begin with it")
	flags.StringVar(&request.Filter.Host, "host", "", "host of the resource")
	flags.StringVar(&text.Job, "job", "", "id of the job")
	flags.StringVar(&text.Since, "since", "", "failed at this time or later: 2026-01-31T12:00:00Z, or an age such as 2h")
	flags.StringVar(&text.Until, "until", "", "failed before this time, or longer ago than an age")
	flags.IntVar(&request.Canary, "canary", 0, "resources to replay first; the others follow only if these end well")
	flags.Float64Var(&request.PerSecond, "rate", 0, "resources per second (10)")
	flags.IntVar(&request.Limit, "limit", 0, "total number of resources")
	flags.StringVar(&request.Reason, "reason", "", "for the audit log")
	flags.BoolVar(&request.DryRun, "dry-run", false, "only show what would be replayed")
	flags.StringVar(&address, "server", "", "address of the running fetchbox (http://ADDR); its API key is read from FETCHBOX_KEY, or else from the file key in DATA_DIR")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "fetchbox replay sends resources whose dead letters are in the stream to their queue again, each at most once for each dead letter.")
			flags.SetOutput(out)
			flags.PrintDefaults()
			return nil
		}
		return errors.Join(err, fmt.Errorf("replay: %w", errUsage))
	}
	if err := text.ParseInto(&request.Filter); err != nil {
		return fmt.Errorf("%w\n%w", err, errUsage)
	}
	key, err := commandKey(set, env)
	if err != nil {
		return err
	}
	answer, err := callAPI(ctx, cmp.Or(address, localAddress(set.Addr)), key, request)
	if err != nil {
		return err
	}
	return printReplay(out, request.DryRun, answer)
}

// localAddress returns the address at which this machine reaches a fetchbox that listens on ADDR.
func localAddress(addr string) string {
	host, port, _ := net.SplitHostPort(addr) // the settings are valid
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func commandKey(set *settings, env func(string) string) (string, error) {
	if key := env("FETCHBOX_KEY"); key != "" {
		return key, nil
	}
	text, err := os.ReadFile(filepath.Join(set.Data, "key"))
	if err != nil {
		return "", fmt.Errorf("there is no API key: set FETCHBOX_KEY, or DATA_DIR to that of the running fetchbox: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func callAPI(ctx context.Context, address, key string, request replay.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/api/replays", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetchbox does not answer: %w; start it, or give its address with -server", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode >= 300 {
		var answer struct {
			Error struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal(text, &answer)
		err = fmt.Errorf("%s: %s", cmp.Or(answer.Error.Code, response.Status), answer.Error.Message)
	}
	return text, err
}

func printReplay(out io.Writer, dryRun bool, text []byte) error {
	if !dryRun {
		var p replay.Progress
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		fmt.Fprintf(out, "Replay %s has started, up to dead letter %d. Its progress is on the page and at /api/replays.\n", p.ID, p.Filter.To)
		return nil
	}
	var p replay.Preview
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d dead letters match; %d of their resources are still failed and would be replayed.\n", p.Letters, p.Eligible)
	for _, of := range []map[string]int{p.Codes, p.Hosts} {
		for _, name := range slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) }) {
			fmt.Fprintf(out, "  %6d  %s\n", of[name], name)
		}
	}
	if p.More {
		fmt.Fprintf(out, "Only those up to sequence number %d were looked at: there are more.\n", p.Last)
	}
	return nil
}
