# clinveil in a container that needs no network at run time:
#   docker build -t clinveil .
#   docker run --rm --network none -e CLINVEIL_LEDGER=/data/ledger -v "$PWD:/data" --user "$(id -u):$(id -g)" clinveil release notes.parquet -o out --as deidentified
# Extras: docker build --build-arg EXTRAS='[neural]' -t clinveil .
FROM python:3.11-slim AS build
ARG EXTRAS=""
COPY . /source
RUN python -m venv /opt/clinveil && /opt/clinveil/bin/pip install --no-cache-dir "/source${EXTRAS}"

FROM python:3.11-slim
COPY --from=build /opt/clinveil /opt/clinveil
RUN useradd --create-home clinveil && install -d -o clinveil /data
USER clinveil
WORKDIR /data
ENV PATH="/opt/clinveil/bin:$PATH" HOME=/tmp NUMBA_CACHE_DIR=/tmp/numba
ENTRYPOINT ["clinveil"]
CMD ["--help"]
