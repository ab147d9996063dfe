-- KEYS lease
-- Returns {held, lease, its remaining ms} or {none}.

local err = foreign(KEYS[1], 'string')
if err then
  return err
end
local value = redis.call('GET', KEYS[1])
if not value then
  return {'none'}
end
return {'held', value, redis.call('PTTL', KEYS[1])}
