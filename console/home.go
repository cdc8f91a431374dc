package console

import "net/http"

// mountHome redirects the root to the errors page if something needs attention, and otherwise to the overview.
func (c *Console) mountHome() {
	c.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		q, err := c.authenticate(w, r)
		if err != nil {
			c.renderError(w, r, err)
			return
		}
		to := "/overview"
		if seen, _ := c.snapshots.now(q.ctx); seen.NeedsAttention() {
			to = "/failures"
		}
		http.Redirect(w, r, c.cfg.Prefix+to, http.StatusSeeOther)
	})
	c.mountOverview()
}
