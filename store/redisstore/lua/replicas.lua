-- KEYS sessions, info
-- Returns {ok, IDs, infos}.

local err = foreign(KEYS[1], 'zset') or foreign(KEYS[2], 'hash')
if err then
  return err
end
local ms = math.floor(now_us() / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], whole(ms), '+inf')
local infos = {}
for i, id in ipairs(ids) do
  infos[i] = redis.call('HGET', KEYS[2], id) or ''
end
return {'ok', ids, infos}
