"""Downloads the URLs of a CSV file (URL,name) into a bucket with Scrapy's FilesPipeline."""
import csv
import os
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.pipelines.files import FilesPipeline


class Named(FilesPipeline):
    """Stores each file under the name in the CSV file."""

    def get_media_requests(self, item, info):
        return [scrapy.Request(item["url"], meta={"name": item["name"]})]

    def file_path(self, request, response=None, info=None, *, item=None):
        return request.meta["name"]


class Spider(scrapy.Spider):
    """Yields one item for each line of the CSV file."""

    name = "bench"
    start_urls = ["data:,start"]

    def parse(self, response):
        with open(sys.argv[1], newline="") as file:
            for url, name in csv.reader(file):
                yield {"url": url, "name": name}


process = CrawlerProcess(settings={
    "ITEM_PIPELINES": {Named: 1},
    "FILES_STORE": "s3://" + sys.argv[2] + "/",
    "AWS_ENDPOINT_URL": os.environ["S3_ENDPOINT"],
    "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
    "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
    "AWS_REGION_NAME": os.environ["AWS_REGION"],
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "CONCURRENT_ITEMS": 100,
    "DOWNLOAD_MAXSIZE": int(sys.argv[3]),
    "DOWNLOAD_WARNSIZE": 0,
    "DOWNLOAD_TIMEOUT": int(sys.argv[4]),
    "MEDIA_ALLOW_REDIRECTS": True,
    "RETRY_TIMES": 0,
    "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Spider)
process.start()
