package intake

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
)

// checker returns what manifests are checked against.
func (i *Intake) checker() manifest.Checker {
	return manifest.Checker{Handler: i.knownHandler, Proxy: i.knownPool, Download: i.checkDownload}
}

// checkDownload refuses what no download could fetch: a private address, a header that FetchBox sets itself, a region without a proxy.
func (i *Intake) checkDownload(r *manifest.Resource) *manifest.Problem {
	err := i.cfg.Fetcher.Check(work.RequestOf(r))
	if err == nil {
		return nil
	}
	p := &manifest.Problem{Code: code.ValidationInvalidField, Message: err.Error()}
	switch code.OfError(err) {
	case code.DownloadInvalidURL, code.DownloadAddressBlocked:
		p.Field, p.Code = "url", code.ValidationInvalidURL
	case code.DownloadUnknownPool:
		p.Field, p.Code = "region", code.ValidationUnknownName
	default:
		p.Field = "headers"
	}
	return p
}

func (i *Intake) knownHandler(name string) error {
	if i.cfg.Handlers[name] == nil {
		return fmt.Errorf("there is no handler %s; there are %s", name, strings.Join(slices.Sorted(maps.Keys(i.cfg.Handlers)), ", "))
	}
	return nil
}

func (i *Intake) knownPool(name string) error {
	if name == proxy.Direct {
		return nil
	}
	for _, p := range i.cfg.Proxies.Status() {
		if p.Pool == name {
			return nil
		}
	}
	return fmt.Errorf("there is no proxy pool %s", name)
}

// refuse returns the answer for a manifest with problems.
func refuse(p *manifest.Problems) refusal.Error {
	line := strconv.Itoa(p.Count) + " problems in the manifest. Nothing was accepted."
	if p.Count == 1 {
		line = "One problem in the manifest. Nothing was accepted."
	}
	return refusal.Error{Code: p.List[0].Code, Status: http.StatusUnprocessableEntity, Line: line, Problems: p}
}
