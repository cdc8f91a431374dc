package campaign

import "github.com/holdfastdev/holdfast/apps/internal/database"

// schema is the history of the tables of this package. Steps are appended and never changed.
var schema = database.Schema{Name: "watermark", Steps: []string{
	`CREATE TABLE watermark_asset (
		id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, size BIGINT NOT NULL, width BIGINT NOT NULL, height BIGINT NOT NULL,
		duration_ms BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
	`CREATE INDEX watermark_asset_owner ON watermark_asset (owner, created_at)`,
	`CREATE TABLE watermark_campaign (
		id TEXT PRIMARY KEY, owner TEXT NOT NULL, asset TEXT NOT NULL REFERENCES watermark_asset (id), name TEXT NOT NULL, visible BIGINT NOT NULL, invisible BIGINT NOT NULL,
		max_downloads BIGINT NOT NULL, expires_at BIGINT NOT NULL, created_at BIGINT NOT NULL, published_at BIGINT NOT NULL, job_group TEXT NOT NULL)`,
	`CREATE INDEX watermark_campaign_owner ON watermark_campaign (owner, created_at)`,
	`CREATE TABLE watermark_token (
		id TEXT PRIMARY KEY, campaign TEXT NOT NULL REFERENCES watermark_campaign (id), place BIGINT NOT NULL, name TEXT NOT NULL, email TEXT NOT NULL, secret TEXT NOT NULL UNIQUE,
		job TEXT NOT NULL, downloads BIGINT NOT NULL, served BIGINT NOT NULL, last_download BIGINT NOT NULL, UNIQUE (campaign, place))`,
	`CREATE INDEX watermark_campaign_group ON watermark_campaign (job_group)`,
	`CREATE TABLE watermark_letter (id TEXT PRIMARY KEY, owner TEXT NOT NULL, recipient TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL, created_at BIGINT NOT NULL)`,
	`CREATE TABLE watermark_owner (owner TEXT PRIMARY KEY, hook_url TEXT NOT NULL)`,
	`CREATE TABLE watermark_exhausted (
		job TEXT NOT NULL, generation BIGINT NOT NULL, campaign TEXT NOT NULL, token TEXT NOT NULL, code TEXT NOT NULL, said TEXT NOT NULL, noted_at BIGINT NOT NULL, mail TEXT NOT NULL,
		PRIMARY KEY (job, generation))`,
	`CREATE INDEX watermark_exhausted_mail ON watermark_exhausted (mail, campaign)`,
	`CREATE TABLE watermark_followed (name TEXT PRIMARY KEY, seq BIGINT NOT NULL)`,
	`INSERT INTO watermark_followed (name, seq) VALUES ('failures', 0)`,
	`CREATE TABLE watermark_upload (id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, size BIGINT NOT NULL, created_at BIGINT NOT NULL)`,
}}
