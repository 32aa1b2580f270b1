"""MQTT over aiomqtt."""

import aiomqtt  # noqa: F401
